package io.tachograph.bootstrap;

/**
 * The call that started a thread. Looked up once, when a thread gets its buffer, so that threads
 * without records cost nothing. A probe provides the answer; without a probe there is none.
 */
public abstract class Inheritance {
    private static volatile Inheritance source;

    protected Inheritance() {}

    /** Registers the provider. */
    public static void use(Inheritance source) {
        Inheritance.source = source;
    }

    static Context of(Thread thread) {
        Inheritance asked = source;
        return asked == null ? null : asked.originOf(thread);
    }

    /**
     * The call in which {@code thread} was started; null if there is none or it is excluded. Must
     * not throw.
     */
    protected abstract Context originOf(Thread thread);
}
