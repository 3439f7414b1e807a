package io.tachograph.core.send;

import java.time.Instant;
import java.util.function.Supplier;

/**
 * Converts {@code System.nanoTime()} to time since the Unix epoch. The offset between the two
 * clocks is measured repeatedly, so that new segments follow changes of the wall clock. A segment
 * keeps its initial offset, so its durations never jump.
 */
final class WallClock {
    private static final int TRIES = 3;

    private final Supplier<Instant> wall;
    private long offset;

    WallClock() {
        this(Instant::now);
    }

    /** @param wall returns the current time, which may jump in either direction */
    WallClock(Supplier<Instant> wall) {
        this.wall = wall;
        update();
    }

    /** Of several readings, the reading that took the shortest time is used. */
    void update() {
        long narrowest = Long.MAX_VALUE;
        for (int tries = 0; tries < TRIES; tries++) {
            long before = System.nanoTime();
            Instant now = wall.get();
            long after = System.nanoTime();
            if (after - before < narrowest) {
                narrowest = after - before;
                offset =
                        now.getEpochSecond() * 1_000_000_000L
                                + now.getNano()
                                - (before + (after - before) / 2);
            }
        }
    }

    /** The offset to add to a {@code nanoTime}; the sum is ns since the epoch. */
    long offset() {
        return offset;
    }
}
