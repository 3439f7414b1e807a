package io.tachograph.probes.jdbc;

import io.tachograph.bootstrap.probe.Connections;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code DataSource.getConnection}. */
final class GetConnectionAdvice {
    private GetConnectionAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Advice.This Object source) {
        return Connections.enter(source.getClass());
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Enter int call, @Advice.Thrown Throwable thrown) {
        Connections.exit(call, thrown);
    }
}
