package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Statements;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/**
 * Inlined into {@code execute}, {@code executeQuery}, {@code executeUpdate} and {@code
 * executeLargeUpdate} of a statement. These methods have no arguments, or the SQL text as first
 * argument.
 */
final class StatementAdvice {
    private StatementAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(
            @Advice.This Object statement,
            @Advice.Argument(value = 0, optional = true, typing = Assigner.Typing.DYNAMIC)
                    Object text) {
        return Statements.enter(statement, text instanceof String ? (String) text : null);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Enter int call, @Advice.Thrown Throwable thrown) {
        Statements.exit(call, 0, thrown);
    }
}
