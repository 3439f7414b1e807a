package io.tachograph.agent;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.net.URI;
import java.util.jar.JarFile;

/**
 * Entry point of the agent. With {@code -javaagent}, the JVM calls {@code premain} before {@code
 * main}. If the agent is attached later, the JVM calls {@code agentmain}. If the start fails, the
 * program runs without the agent.
 */
public final class Premain {
    private static final String STARTUP = "io.tachograph.agent.inside.Startup";
    private static boolean started;

    private Premain() {}

    public static void premain(String arguments, Instrumentation instrumentation) {
        start(arguments, instrumentation);
    }

    public static void agentmain(String arguments, Instrumentation instrumentation) {
        start(arguments, instrumentation);
    }

    private static synchronized void start(String arguments, Instrumentation instrumentation) {
        if (started) {
            System.err.println(
                    "tachograph: agent already loaded; the second load has no effect");
            return;
        }
        started = true;
        try {
            URI location =
                    Premain.class.getProtectionDomain().getCodeSource().getLocation().toURI();
            JarFile jar = new JarFile(new File(location));
            ClassLoader inside = new InsideClassLoader(jar, location);
            Class.forName(STARTUP, true, inside)
                    .getMethod("start", String.class, Instrumentation.class, JarFile.class)
                    .invoke(null, arguments, instrumentation, jar);
        } catch (Throwable e) {
            Throwable cause = e.getCause() != null ? e.getCause() : e;
            System.err.println(
                    "tachograph: the agent failed to start, nothing is recorded: " + cause);
        }
    }
}
