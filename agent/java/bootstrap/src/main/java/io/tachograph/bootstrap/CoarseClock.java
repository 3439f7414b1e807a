package io.tachograph.bootstrap;

/**
 * A clock that is read with one field access. The sender sets the time only when it wakes up, so
 * the time may be 50 ms old or older.
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
