package io.tachograph.probes.http;

import com.sun.net.httpserver.HttpExchange;

import io.tachograph.bootstrap.probe.HttpServer;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code HttpExchange.close()} of the JDK's HTTP server. */
final class JdkCloseAdvice {
    private JdkCloseAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.This HttpExchange exchange) {
        HttpServer.closed(exchange);
    }
}
