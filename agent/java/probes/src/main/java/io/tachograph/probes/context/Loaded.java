package io.tachograph.probes.context;

/**
 * Loads classes of the JDK before byte code is changed. A class that the JVM loads during the
 * change of another class is never offered to the transformer.
 */
final class Loaded {
    private Loaded() {}

    /** Loads without initialising; skips a class that this JDK does not have. */
    static void now(String... names) {
        for (String name : names) {
            try {
                Class.forName(name, false, null);
            } catch (ClassNotFoundException e) {
                // Not in this JDK version.
            }
        }
    }
}
