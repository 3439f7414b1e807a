package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.isStatic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/** Requests sent by {@code java.net.http.HttpClient}. */
public final class HttpClientProbe implements Probe {
    private static final String CLIENT = "jdk.internal.net.http.HttpClientImpl";
    private static final String PUBLIC_REQUEST = "java.net.http.HttpRequest";
    private static final String REQUEST = "jdk.internal.net.http.HttpRequestImpl";

    @Override
    public String name() {
        return "http-client";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(CLIENT, REQUEST);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        var request = isPublic().and(takesArgument(0, named(PUBLIC_REQUEST)));
        return builder.type(named(CLIENT))
                .transform(
                        setup.advice(
                                HttpClientAdvice.class,
                                named("send").or(named("sendAsync")).and(request)))
                .type(named(REQUEST))
                .transform(
                        setup.advice(
                                HttpRequestAdvice.class,
                                isConstructor()
                                        .and(takesArguments(2))
                                        .and(takesArgument(0, named(PUBLIC_REQUEST)))))
                .transform(
                        setup.advice(
                                HttpFollowAdvice.class,
                                isStatic()
                                        .and(
                                                namedOneOf(
                                                        "newInstanceForRedirection",
                                                        "newInstanceForAuthentication"))));
    }
}
