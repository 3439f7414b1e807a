package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code close()} of the stream to which the body of an answer is written. */
final class JdkBodyAdvice {
    private JdkBodyAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.This Object body) {
        HttpServer.written(body);
    }
}
