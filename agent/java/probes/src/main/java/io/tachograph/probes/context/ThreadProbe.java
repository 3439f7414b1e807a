package io.tachograph.probes.context;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;

import io.tachograph.bootstrap.probe.ThreadOrigins;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * Threads, including virtual ones, that are started inside a recorded call: by {@code
 * Thread.start}, or by an executor with a thread for each task. The probe does not instrument
 * {@code run()}: the first recorded call of the thread looks up the origin.
 */
public final class ThreadProbe implements Probe {
    private static final String THREAD = "java.lang.Thread";

    /** Exists in JDK 21 and later. */
    private static final String VIRTUAL_THREAD = "java.lang.VirtualThread";

    @Override
    public String name() {
        return "thread";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(THREAD, VIRTUAL_THREAD);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Loaded.now(THREAD, VIRTUAL_THREAD);
        ThreadOrigins.install();
        return builder.type(namedOneOf(THREAD, VIRTUAL_THREAD))
                .transform(setup.advice(ThreadStartAdvice.class, named("start")));
    }
}
