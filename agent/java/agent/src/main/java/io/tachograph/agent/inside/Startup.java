package io.tachograph.agent.inside;

import io.tachograph.core.Agent;
import io.tachograph.probes.Probes;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/** Called by {@code io.tachograph.agent.Premain}, by name: it lives in the other class loader. */
public final class Startup {
    private Startup() {}

    /**
     * @param arguments path of the configuration file, or null
     * @param jar the agent's own
     */
    public static void start(String arguments, Instrumentation instrumentation, JarFile jar)
            throws IOException {
        // From here and not from Premain: what the JVM opens for it is open to the module of the
        // caller, and that of Premain is the program's.
        BootstrapClasses.install(instrumentation, jar);
        Agent.start(arguments, instrumentation, Probes.all());
    }
}
