package io.tachograph.bootstrap;

/**
 * A clock that costs one field read and may be some 100 ms late: the sender sets it each time it
 * wakes up.
 */
public final class CoarseClock {
    private static volatile long nanos;

    private CoarseClock() {}

    /** {@code System.nanoTime()} at the last update. */
    public static long nanos() {
        return nanos;
    }

    public static void set(long now) {
        nanos = now;
    }
}
