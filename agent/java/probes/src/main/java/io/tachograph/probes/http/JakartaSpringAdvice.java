package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;

import jakarta.servlet.http.HttpServletRequest;

import net.bytebuddy.asm.Advice;

/**
 * Inlined into {@code DispatcherServlet.getHandler} of Spring MVC for the package {@code
 * jakarta.servlet}. The build creates the class for the older package name from this file
 * (pom.xml).
 */
final class JakartaSpringAdvice {
    private JakartaSpringAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.Argument(0) Object argument) {
        HttpServletRequest request = (HttpServletRequest) argument;
        Object pattern =
                request.getAttribute(
                        "org.springframework.web.servlet.HandlerMapping.bestMatchingPattern");
        if (pattern != null) {
            // The pattern of a servlet that is mapped to a prefix such as /api/* is relative to the
            // prefix.
            HttpServer.routed(
                    request.getPathInfo() == null
                            ? request.getContextPath()
                            : request.getContextPath() + request.getServletPath(),
                    pattern.toString());
        }
    }
}
