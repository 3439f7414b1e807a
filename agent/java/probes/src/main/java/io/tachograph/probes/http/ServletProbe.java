package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isInterface;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.returns;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.core.config.Setting;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;
import io.tachograph.probes.Inherits;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;

/** Requests to servlets and filters of {@code javax} and {@code jakarta}, in any container. */
public final class ServletProbe implements Probe {
    @Override
    public String name() {
        return "servlet";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        HttpServer.requestIdHeaders(
                setup.settings().list(Setting.REQUEST_ID_HEADERS).toArray(new String[0]));
        return install(
                install(
                        builder,
                        setup,
                        "jakarta.servlet.",
                        JakartaServletAdvice.class,
                        JakartaStartAsyncAdvice.class),
                setup,
                "javax.servlet.",
                JavaxServletAdvice.class,
                JavaxStartAsyncAdvice.class);
    }

    private static AgentBuilder install(
            AgentBuilder builder,
            ProbeSetup setup,
            String api,
            Class<?> advice,
            Class<?> startAsyncAdvice) {
        ElementMatcher.Junction<MethodDescription> service =
                named("service").and(takesArguments(2));
        ElementMatcher.Junction<MethodDescription> doFilter =
                named("doFilter").and(takesArguments(3));
        ElementMatcher.Junction<MethodDescription> entry =
                service.or(doFilter)
                        .and(takesArgument(0, named(api + "ServletRequest")))
                        .and(takesArgument(1, named(api + "ServletResponse")))
                        .and(not(isAbstract()));
        ElementMatcher.Junction<MethodDescription> startAsync =
                named("startAsync")
                        .and(returns(named(api + "AsyncContext")))
                        .and(not(isAbstract()));
        return builder.type(
                        not(isInterface())
                                .and(
                                        new Inherits(
                                                api + "Servlet",
                                                api + "Filter",
                                                api + "ServletRequest")),
                        new Loads(api + "Servlet"))
                .transform(setup.advice(advice, entry))
                .transform(setup.advice(startAsyncAdvice, startAsync));
    }
}
