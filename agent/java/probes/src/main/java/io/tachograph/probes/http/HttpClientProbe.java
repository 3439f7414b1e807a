package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/** Requests sent by {@code java.net.http.HttpClient}. */
public final class HttpClientProbe implements Probe {
    private static final String CLIENT = "jdk.internal.net.http.HttpClientImpl";

    @Override
    public String name() {
        return "http-client";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(CLIENT);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        var request = isPublic().and(takesArgument(0, named("java.net.http.HttpRequest")));
        return builder.type(named(CLIENT))
                .transform(
                        setup.advice(
                                HttpClientAdvice.class,
                                named("send").or(named("sendAsync")).and(request)));
    }
}
