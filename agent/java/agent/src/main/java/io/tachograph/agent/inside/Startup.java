package io.tachograph.agent.inside;

import io.tachograph.core.Agent;
import io.tachograph.probes.Probes;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * Starts the agent inside its own class loader. {@code io.tachograph.agent.Premain}, in another
 * class loader, calls this class by reflection.
 */
public final class Startup {
    private Startup() {}

    /**
     * @param arguments path of the configuration file, or null
     * @param jar the jar of the agent
     */
    public static void start(String arguments, Instrumentation instrumentation, JarFile jar)
            throws IOException {
        // BootstrapClasses exports a package of the JDK to the module that contains
        // BootstrapClasses. Premain does not make this call, because its class loader would put
        // BootstrapClasses into a module of the program.
        BootstrapClasses.install(instrumentation, jar);
        Agent.start(arguments, instrumentation, Probes.all());
    }
}
