package io.tachograph.probes.http;

import io.tachograph.bootstrap.probe.HttpServer;

import net.bytebuddy.asm.Advice;

import org.glassfish.jersey.server.ExtendedUriInfo;
import org.glassfish.jersey.server.internal.process.RequestProcessingContext;
import org.glassfish.jersey.uri.UriTemplate;

import java.util.List;

/**
 * Inlined into {@code RoutingStage.apply}, which finds the method for a request. The signature of
 * the advice has no types of Jersey, because the agent's class loader does not have these types.
 */
final class JerseyAdvice {
    private JerseyAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(@Advice.Argument(0) Object argument) {
        ExtendedUriInfo uri = ((RequestProcessingContext) argument).request().getUriInfo();
        List<UriTemplate> templates = uri.getMatchedTemplates();
        if (templates.isEmpty()) {
            return;
        }
        String route = "";
        // The innermost template comes first.
        for (UriTemplate template : templates) {
            String text = template.getTemplate();
            int end = text.endsWith("/") ? text.length() - 1 : text.length();
            route = (text.startsWith("/") ? "" : "/") + text.substring(0, end) + route;
        }
        String base = uri.getBaseUri().getRawPath();
        HttpServer.routed(base.substring(0, base.length() - 1), route);
    }
}
