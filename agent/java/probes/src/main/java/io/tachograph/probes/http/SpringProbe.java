package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

/** Adds the routes of Spring MVC to the requests that {@link ServletProbe} records. */
public final class SpringProbe implements Probe {
    @Override
    public String name() {
        return "spring";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        var find = named("getHandler").and(takesArguments(1));
        String request = ".servlet.http.HttpServletRequest";
        return builder.type(named("org.springframework.web.servlet.DispatcherServlet"))
                .transform(
                        setup.advice(
                                JakartaSpringAdvice.class,
                                find.and(takesArgument(0, named("jakarta" + request)))))
                .transform(
                        setup.advice(
                                JavaxSpringAdvice.class,
                                find.and(takesArgument(0, named("javax" + request)))));
    }
}
