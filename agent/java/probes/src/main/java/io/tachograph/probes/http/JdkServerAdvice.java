package io.tachograph.probes.http;

import com.sun.net.httpserver.HttpExchange;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.bootstrap.probe.LaterAnswer;
import io.tachograph.bootstrap.probe.Outermost;

import net.bytebuddy.asm.Advice;

/**
 * Inlined into {@code Filter.Chain.doFilter(HttpExchange)}. A filter calls this method again to
 * continue, and the last call runs the handler. Only the outermost call is recorded as the request.
 * If this call returns before the headers of the answer are sent, the request ends when another
 * thread has answered it.
 */
final class JdkServerAdvice {
    private JdkServerAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Advice.Argument(0) HttpExchange exchange) {
        if (!Outermost.enter(Outermost.HTTP_SERVER)) {
            return Outermost.INSIDE;
        }
        String context = exchange.getHttpContext().getPath();
        String path = exchange.getRequestURI().getRawPath();
        if (path == null) {
            path = "";
        }
        // A context serves all paths that begin with the path of the context.
        String prefix = null;
        String route = HttpServer.route(context);
        if (route != null && !route.equals(path)) {
            prefix = route.endsWith("/") ? route.substring(0, route.length() - 1) : route;
            route = "/*";
        }
        String requestId = null;
        for (String name : HttpServer.requestIdHeaders()) {
            if (requestId == null) {
                requestId = exchange.getRequestHeaders().getFirst(name);
            }
        }
        return HttpServer.enter(
                exchange.getRequestMethod(),
                prefix,
                route,
                path,
                exchange.getRequestHeaders().getFirst("traceparent"),
                requestId);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter int call,
            @Advice.Argument(0) HttpExchange exchange,
            @Advice.Thrown Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        int status = 0;
        try {
            status = exchange.getResponseCode();
            if (status < 0 && thrown == null && !HttpServer.isClosed(exchange)) {
                LaterAnswer answer = HttpServer.later();
                if (answer != null) {
                    answer.comesBackAs(exchange);
                    answer.comesBackAs(exchange.getResponseBody());
                    status = exchange.getResponseCode();
                    if (status >= 0) { // another thread was faster
                        answer.answers(status);
                        answer.end();
                    }
                }
            }
        } catch (Throwable e) {
            // A wrapper class of the program throws, so the status is unknown.
        }
        HttpServer.exitAsSent(call, Math.max(0, status), thrown);
    }
}
