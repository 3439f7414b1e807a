package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Statements;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/** Inlined into {@code Statement.executeBatch} and {@code executeLargeBatch}. */
final class BatchAdvice {
    private BatchAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Advice.This Object statement) {
        return Statements.enter(statement, null);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter int call,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object counts,
            @Advice.Thrown Throwable thrown) {
        int rows = 0;
        if (counts instanceof int[]) {
            rows = ((int[]) counts).length;
        } else if (counts instanceof long[]) {
            rows = ((long[]) counts).length;
        }
        Statements.exit(call, rows, thrown);
    }
}
