package io.tachograph.core.instrument;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * One kind of probe: the classes that it matches when they are loaded, and the advice for them. A
 * new probe is one class and one line in {@code io.tachograph.probes.Probes}.
 */
public interface Probe {
    /** Name in the setting {@code probes}: lower case, {@code "jdbc"}. */
    String name();

    /**
     * Full names of the JDK classes that the probe changes; they are retransformed if they are
     * loaded already. Other classes of the JDK are skipped without calling any probe.
     */
    default Set<String> jdkTypes() {
        return Set.of();
    }

    /**
     * Adds its matchers and transformers. {@code builder.type(...).transform(setup.advice(X.class,
     * methods))}.
     *
     * @return the builder with the additions
     */
    AgentBuilder install(AgentBuilder builder, ProbeSetup setup);
}
