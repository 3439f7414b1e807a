package io.tachograph.probes.http;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.bootstrap.probe.HttpServer;
import io.tachograph.core.config.Setting;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

/**
 * Requests to a Jetty 12 server without servlets. If any handler of a server passes requests to
 * servlets, {@link ServletProbe} records these requests with their routes; requests to other
 * handlers of the server are not recorded. In Jetty 9 to 11, only requests to servlets are
 * recorded.
 */
public final class JettyProbe implements Probe {
    @Override
    public String name() {
        return "jetty";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        HttpServer.requestIdHeaders(
                setup.settings().list(Setting.REQUEST_ID_HEADERS).toArray(new String[0]));
        return builder.type(named("org.eclipse.jetty.server.Server"))
                .transform(setup.advice(JettyAdvice.class, named("handle").and(takesArguments(3))));
    }
}
