package io.tachograph.bootstrap;

/**
 * A clock that is read at the price of a field, for what may be some 100 ms out: the sender sets it
 * each time it wakes up.
 */
public final class CoarseClock {
    private static volatile long nanos;

    private CoarseClock() {}

    /** As {@code System.nanoTime()}, late. */
    public static long nanos() {
        return nanos;
    }

    public static void set(long now) {
        nanos = now;
    }
}
