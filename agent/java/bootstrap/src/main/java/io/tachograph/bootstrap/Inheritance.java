package io.tachograph.bootstrap;

/**
 * Who started a thread: asked once when a thread gets its buffer, so that a thread that records
 * nothing costs nothing. A probe knows the answer; without one nobody did.
 */
public abstract class Inheritance {
    private static volatile Inheritance source;

    protected Inheritance() {}

    /** From now on {@code source} is asked. */
    public static void use(Inheritance source) {
        Inheritance.source = source;
    }

    static Context of(Thread thread) {
        Inheritance asked = source;
        return asked == null ? null : asked.originOf(thread);
    }

    /**
     * The call in which {@code thread} was started; null when it was none or should not count. Must
     * not throw.
     */
    protected abstract Context originOf(Thread thread);
}
