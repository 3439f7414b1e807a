package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.bootstrap.probe.Outermost;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

import net.bytebuddy.asm.Advice;

/**
 * Inlined into servlets and filters of the package {@code jakarta.servlet}. The build creates the
 * class for the older package name from this file (pom.xml). The signatures of the advice have no
 * types of the container, because the agent's class loader does not have these types.
 */
final class JakartaServletAdvice {
    private JakartaServletAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static int enter(@Advice.Argument(0) Object argument) {
        if (!(argument instanceof HttpServletRequest) || !Outermost.enter(Outermost.HTTP_SERVER)) {
            return Outermost.INSIDE;
        }
        HttpServletRequest request = (HttpServletRequest) argument;
        if (request.getDispatcherType() != DispatcherType.REQUEST) {
            // The request is already recorded. The container passes it to an error page, or to
            // another thread that answers it.
            Outermost.leave(Outermost.HTTP_SERVER);
            Object own = request;
            while (own instanceof ServletRequestWrapper) {
                own = ((ServletRequestWrapper) own).getRequest();
            }
            return HttpServer.resume(own, request.getDispatcherType() == DispatcherType.ERROR);
        }
        String route = null;
        try {
            route = HttpServer.route(request.getHttpServletMapping().getPattern());
        } catch (Throwable e) {
            // A container older than Servlet 4.0 has no such method.
        }
        String requestId = null;
        for (String name : HttpServer.requestIdHeaders()) {
            if (requestId == null) {
                requestId = request.getHeader(name);
            }
        }
        return HttpServer.enter(
                request.getMethod(),
                request.getContextPath(),
                route,
                request.getRequestURI(),
                request.getHeader("traceparent"),
                requestId);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Enter int call,
            @Advice.Argument(0) Object request,
            @Advice.Argument(1) Object response,
            @Advice.Thrown Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        int status = 0;
        try {
            boolean isOpen = thrown == null && ((HttpServletRequest) request).isAsyncStarted();
            status = isOpen ? 0 : ((HttpServletResponse) response).getStatus();
        } catch (Throwable e) {
            // A wrapper class of the program throws, so the status is unknown.
        }
        HttpServer.exit(call, status, thrown);
    }
}
