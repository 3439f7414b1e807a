package io.tachograph.core.instrument;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * One kind of probe: the classes that it matches when they are loaded, and the advice for them. To
 * add a probe, write one class and one line in {@code io.tachograph.probes.Probes}.
 */
public interface Probe {
    /** The name in the setting {@code probes}, in lower case: {@code "jdbc"}. */
    String name();

    /**
     * Full names of the JDK classes that the probe changes. Classes that are already loaded are
     * retransformed. For a JDK class that no probe names, no probe is called.
     */
    default Set<String> jdkTypes() {
        return Set.of();
    }

    /**
     * Adds the matchers and transformers of the probe: {@code
     * builder.type(...).transform(setup.advice(X.class, methods))}.
     *
     * @return the builder with the additions
     */
    AgentBuilder install(AgentBuilder builder, ProbeSetup setup);
}
