package io.tachograph.bootstrap;

/**
 * Finds the call that started a thread. The agent asks when the thread gets its buffer, or needs
 * its context earlier, so that threads without records cost nothing. A probe provides the
 * implementation; without that probe, threads have no origin.
 */
public abstract class Inheritance {
    private static volatile Inheritance source;

    protected Inheritance() {}

    /** Registers the implementation. */
    public static void use(Inheritance source) {
        Inheritance.source = source;
    }

    static Context of(Thread thread) {
        Inheritance asked = source;
        return asked == null ? null : asked.originOf(thread);
    }

    /**
     * Returns the call in which {@code thread} was started; null if there is none or it is
     * excluded. Must not throw.
     */
    protected abstract Context originOf(Thread thread);
}
