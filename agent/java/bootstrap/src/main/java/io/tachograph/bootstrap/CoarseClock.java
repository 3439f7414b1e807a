package io.tachograph.bootstrap;

/**
 * A clock that is read with one field access. Its time may be 50 ms old or older, because the
 * sender sets it only when it wakes up.
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
