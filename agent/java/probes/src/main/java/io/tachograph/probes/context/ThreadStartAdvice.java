package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.ThreadOrigins;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code Thread.start()} and, on JDK 21 and later, {@code start(ThreadContainer)}. */
final class ThreadStartAdvice {
    private ThreadStartAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.This Thread thread) {
        ThreadOrigins.starts(thread);
    }
}
