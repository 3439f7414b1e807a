package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.bootstrap.probe.LaterAnswer;
import io.tachograph.bootstrap.probe.Outermost;

import net.bytebuddy.asm.Advice;

import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;

/**
 * Inlined into {@code Server.handle(Request, Response, Callback)}. The signatures of the advice
 * have no types of Jetty, because the agent's class loader does not have these types.
 */
final class JettyAdvice {
    private JettyAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Advice.This Object self, @Advice.Argument(0) Object argument) {
        Server server = (Server) self;
        int servlets = HttpServer.servlets(server);
        if (servlets < 0) {
            servlets = 0;
            for (Handler handler : server.getDescendants()) {
                if (HttpServer.isServletHandler(handler.getClass())) {
                    servlets = 1;
                }
            }
            HttpServer.learnServlets(server, servlets == 1);
        }
        if (servlets == 1 || !Outermost.enter(Outermost.HTTP_SERVER)) {
            return Outermost.INSIDE;
        }
        Request request = (Request) argument;
        String requestId = null;
        for (String name : HttpServer.requestIdHeaders()) {
            if (requestId == null) {
                requestId = request.getHeaders().get(name);
            }
        }
        return HttpServer.enter(
                request.getMethod(),
                null,
                null,
                request.getHttpURI().getPath(),
                request.getHeaders().get("traceparent"),
                requestId);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter int call,
            @Advice.Argument(0) Object request,
            @Advice.Argument(1) Object response,
            @Advice.Return boolean handled,
            @Advice.Thrown Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        int status = 0;
        try {
            if (handled && thrown == null && !((Response) response).isCompletedSuccessfully()) {
                LaterAnswer answer = HttpServer.later();
                if (answer != null) {
                    answer.answeredBy(Response.class, response);
                    Request.addCompletionListener((Request) request, answer);
                }
            }
            // Jetty answers 404 later if the request is not handled.
            status = handled || thrown != null ? ((Response) response).getStatus() : 404;
        } catch (Throwable e) {
            // A wrapper class of the program throws, so the status is unknown.
        }
        HttpServer.exit(call, status, thrown);
    }
}
