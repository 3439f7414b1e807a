package io.tachograph.agent.inside;

import io.tachograph.core.Agent;
import io.tachograph.probes.Probes;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * {@code io.tachograph.agent.Premain} calls this class by reflection, since it is in another class
 * loader.
 */
public final class Startup {
    private Startup() {}

    /**
     * @param arguments path of the configuration file, or null
     * @param jar the agent's jar
     */
    public static void start(String arguments, Instrumentation instrumentation, JarFile jar)
            throws IOException {
        // Called from here, not from Premain: the JVM opens packages to the module of the caller,
        // and Premain is in the module of the program.
        BootstrapClasses.install(instrumentation, jar);
        Agent.start(arguments, instrumentation, Probes.all());
    }
}
