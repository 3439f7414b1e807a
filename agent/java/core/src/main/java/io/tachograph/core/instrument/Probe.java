package io.tachograph.core.instrument;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * One kind of probe: what it looks for in classes that are loaded, and the advice it puts there.
 * One more probe is one class and one line in {@code io.tachograph.probes.Probes}.
 */
public interface Probe {
    /** Name in the setting {@code probes}: lower case, {@code "jdbc"}. */
    String name();

    /**
     * Full names of the JDK classes whose byte code it changes. All other classes of the JDK are
     * left alone without asking any probe; these are retransformed when they are loaded already.
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
