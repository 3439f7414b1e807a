package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;

import net.bytebuddy.asm.Advice;

import javax.servlet.http.HttpServletRequest;

/**
 * Inlined into {@code DispatcherServlet.getHandler} of Spring MVC for the package {@code
 * javax.servlet}; the other package has the same advice.
 */
final class JavaxSpringAdvice {
    private JavaxSpringAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.Argument(0) Object argument) {
        HttpServletRequest request = (HttpServletRequest) argument;
        Object pattern =
                request.getAttribute(
                        "org.springframework.web.servlet.HandlerMapping.bestMatchingPattern");
        if (pattern != null) {
            // Behind a mapping such as /api/* the pattern is relative to it.
            HttpServer.routed(
                    request.getPathInfo() == null
                            ? request.getContextPath()
                            : request.getContextPath() + request.getServletPath(),
                    pattern.toString());
        }
    }
}
