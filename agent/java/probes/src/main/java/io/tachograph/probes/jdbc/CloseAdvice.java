package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Statements;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code Statement.close}. */
final class CloseAdvice {
    private CloseAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.This Object statement) {
        Statements.forget(statement);
    }
}
