package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Statements;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code Statement.addBatch(String)}. */
final class AddBatchAdvice {
    private AddBatchAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.This Object statement, @Advice.Argument(0) String text) {
        Statements.learnBatch(statement, text);
    }
}
