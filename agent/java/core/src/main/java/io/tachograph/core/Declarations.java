package io.tachograph.core;

import java.lang.instrument.Instrumentation;

/**
 * Notifies the program's copies of {@code io.tachograph.api} that an agent is loaded: each copy
 * checked for an agent when it was loaded, and an attached agent comes later.
 */
final class Declarations {
    private static final String RECORDS = "io.tachograph.api.Records";

    private Declarations() {}

    static void tell(Instrumentation instrumentation) {
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (loaded.getName().equals(RECORDS)) {
                try {
                    loaded.getMethod("attached").invoke(null);
                } catch (ReflectiveOperationException | LinkageError e) {
                    // An incompatible copy: it continues without the agent.
                }
            }
        }
    }
}
