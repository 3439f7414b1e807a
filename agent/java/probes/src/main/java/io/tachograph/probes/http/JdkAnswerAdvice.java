package io.tachograph.probes.http;

import com.sun.net.httpserver.HttpExchange;

import io.tachograph.bootstrap.probe.HttpServer;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code HttpExchange.sendResponseHeaders(int, long)} of the JDK's HTTP server. */
final class JdkAnswerAdvice {
    private static final long NO_BODY = -1;

    private JdkAnswerAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(
            @Advice.This HttpExchange exchange,
            @Advice.Argument(0) int status,
            @Advice.Argument(1) long bytes) {
        boolean isWhole = bytes == NO_BODY || exchange.getRequestMethod().equals("HEAD");
        HttpServer.answers(exchange, status, isWhole);
    }
}
