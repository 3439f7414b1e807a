package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.isBridge;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

/**
 * Adds the routes of Jersey, the reference implementation of JAX-RS, to requests that the probe of
 * a server records.
 */
public final class JerseyProbe implements Probe {
    @Override
    public String name() {
        return "jersey";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        return builder.type(named("org.glassfish.jersey.server.internal.routing.RoutingStage"))
                .transform(
                        setup.advice(JerseyAdvice.class, named("apply").and(takesArguments(1)).and(not(isBridge()))));
    }
}
