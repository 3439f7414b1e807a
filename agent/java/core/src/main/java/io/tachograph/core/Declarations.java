package io.tachograph.core;

import java.lang.instrument.Instrumentation;

/**
 * Tells the program's copies of {@code io.tachograph.api} that an agent has come: each decided when
 * it was loaded whether there is one, and an agent that is attached comes later.
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
                    // A copy of its own kind: it goes on without us.
                }
            }
        }
    }
}
