package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.core.config.Setting;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * Requests to handlers and filters of the JDK's own server, {@code
 * com.sun.net.httpserver.HttpServer}.
 */
public final class JdkServerProbe implements Probe {
    private static final String CHAIN = "com.sun.net.httpserver.Filter$Chain";
    private static final String EXCHANGE = "sun.net.httpserver.HttpExchangeImpl";
    private static final String SECURE_EXCHANGE = "sun.net.httpserver.HttpsExchangeImpl";
    private static final String BODY = "sun.net.httpserver.PlaceholderOutputStream";

    @Override
    public String name() {
        return "jdk-server";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(CHAIN, EXCHANGE, SECURE_EXCHANGE, BODY);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        HttpServer.requestIdHeaders(
                setup.settings().list(Setting.REQUEST_ID_HEADERS).toArray(new String[0]));
        return builder.type(named(CHAIN))
                .transform(
                        setup.advice(
                                JdkServerAdvice.class, named("doFilter").and(takesArguments(1))))
                .type(namedOneOf(EXCHANGE, SECURE_EXCHANGE))
                .transform(
                        setup.advice(
                                JdkAnswerAdvice.class,
                                named("sendResponseHeaders").and(takesArguments(2))))
                .transform(
                        setup.advice(
                                JdkCloseAdvice.class, named("close").and(takesArguments(0))))
                .type(named(BODY))
                .transform(
                        setup.advice(
                                JdkBodyAdvice.class, named("close").and(takesArguments(0))));
    }
}
