package io.tachograph.core.send;

import java.time.Instant;
import java.util.function.Supplier;

/**
 * Turns {@code System.nanoTime()} into time since the Unix epoch. The difference between the two
 * clocks is read again and again, so the recorder follows a clock that is set; a segment keeps the
 * difference it began with, so its durations do not see the jump.
 */
final class WallClock {
    private static final int TRIES = 3;

    private final Supplier<Instant> wall;
    private long offset;

    WallClock() {
        this(Instant::now);
    }

    /**
     * @param wall what time it is; may jump in either direction
     */
    WallClock(Supplier<Instant> wall) {
        this.wall = wall;
        update();
    }

    /** Reads both clocks. Keeps the reading with the least time between its two ends. */
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

    /** To be added to a {@code nanoTime}: ns since the epoch. */
    long offset() {
        return offset;
    }
}
