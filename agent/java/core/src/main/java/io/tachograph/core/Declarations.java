package io.tachograph.core;

import java.lang.instrument.Instrumentation;

/**
 * Notifies the copies of {@code io.tachograph.api} in the program that an agent is loaded. A copy
 * itself checks for an agent only once, when the class of the copy is loaded.
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
                    // The copy is incompatible. It continues without the agent.
                }
            }
        }
    }
}
