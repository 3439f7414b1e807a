package io.tachograph.probes.context;

/**
 * Loads classes of the JDK before byte code is changed. If the JVM loads a class during the change
 * of another class, it never passes the loaded class to the transformer.
 */
final class Loaded {
    private Loaded() {}

    /** Loads classes without initialising them. */
    static void now(String... names) {
        for (String name : names) {
            try {
                Class.forName(name, false, null);
            } catch (ClassNotFoundException e) {
                // This JDK version does not have the class.
            }
        }
    }
}
