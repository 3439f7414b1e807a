package io.tachograph.agent.inside;

import io.tachograph.core.Agent;
import io.tachograph.probes.Probes;

import java.lang.instrument.Instrumentation;

/** Called by {@code io.tachograph.agent.Premain}, by name: it lives in the other class loader. */
public final class Startup {
    private Startup() {}

    public static void start(String arguments, Instrumentation instrumentation) {
        Agent.start(arguments, instrumentation, Probes.all());
    }
}
