package io.tachograph.bootstrap;

/**
 * Finds the call in which a thread was started, the parent of the thread's outermost calls. The
 * look-up happens only when the thread records a call or needs its context, such as for a task that
 * it submits. A probe provides the implementation.
 */
public abstract class Inheritance {
    private static volatile Inheritance source;

    protected Inheritance() {}

    public static void use(Inheritance source) {
        Inheritance.source = source;
    }

    static Context of(Thread thread) {
        Inheritance asked = source;
        return asked == null ? null : asked.originOf(thread);
    }

    /**
     * Returns the call in which {@code thread} was started; null if there is none, or if the thread
     * is excluded, as threads of pools are. Must not throw.
     */
    protected abstract Context originOf(Thread thread);
}
