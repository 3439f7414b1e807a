package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Statements;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/**
 * Inlined into {@code Connection.prepareStatement} and {@code prepareCall}. If a pool's connection
 * calls the driver's connection, only the pool's statement is noted.
 */
final class PrepareAdvice {
    private PrepareAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static boolean enter(@Advice.This Object connection) {
        return Statements.enterPrepare(connection);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter boolean isOutermost,
            @Advice.Argument(0) String text,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object statement) {
        if (isOutermost) {
            Statements.leavePrepare(statement, text);
        }
    }
}
