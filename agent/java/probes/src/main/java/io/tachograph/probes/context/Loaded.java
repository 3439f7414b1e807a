package io.tachograph.probes.context;

/**
 * Classes of the JDK that must be there before byte code is changed. One that the JVM happens to
 * load while another is being changed is never offered for change.
 */
final class Loaded {
    private Loaded() {}

    /** Loads without initialising; a class that this JDK does not have is left out. */
    static void now(String... names) {
        for (String name : names) {
            try {
                Class.forName(name, false, null);
            } catch (ClassNotFoundException e) {
                // Not in this version.
            }
        }
    }
}
