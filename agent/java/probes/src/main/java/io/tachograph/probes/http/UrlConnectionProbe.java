package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * Requests sent by {@code java.net.HttpURLConnection}. Connections with and without TLS use the
 * same class. The recorded call is {@code getInputStream}, which sends the remaining data and waits
 * for the answer. Calls after the answer are not recorded.
 */
public final class UrlConnectionProbe implements Probe {
    private static final String CONNECTION = "sun.net.www.protocol.http.HttpURLConnection";

    @Override
    public String name() {
        return "url-connection";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(CONNECTION);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        var early = named("connect").or(named("getOutputStream")).and(takesNoArguments());
        return builder.type(named(CONNECTION))
                .transform(
                        setup.advice(
                                UrlConnectionAdvice.class,
                                named("getInputStream").and(takesNoArguments())))
                .transform(setup.advice(UrlConnectionEarlyAdvice.class, early));
    }
}
