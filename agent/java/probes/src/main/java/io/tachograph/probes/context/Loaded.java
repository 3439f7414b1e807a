package io.tachograph.probes.context;

/**
 * Loads classes of the JDK before byte code is changed. A class that the JVM loads during the
 * change of another class never reaches the transformer.
 */
final class Loaded {
    private Loaded() {}

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
