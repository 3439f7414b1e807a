package io.tachograph.core.send;

import java.time.Instant;

/**
 * Turns {@code System.nanoTime()} into time since the Unix epoch. The difference between the two
 * clocks is read again and again, so the recorder follows a clock that is set; a segment keeps the
 * difference it began with, so its durations do not see the jump.
 */
final class WallClock {
    private static final int TRIES = 3;

    private long offset;

    WallClock() {
        update();
    }

    /** Reads both clocks. Keeps the reading with the least time between its two ends. */
    void update() {
        long narrowest = Long.MAX_VALUE;
        for (int tries = 0; tries < TRIES; tries++) {
            long before = System.nanoTime();
            Instant wall = Instant.now();
            long after = System.nanoTime();
            if (after - before < narrowest) {
                narrowest = after - before;
                offset =
                        wall.getEpochSecond() * 1_000_000_000L
                                + wall.getNano()
                                - (before + (after - before) / 2);
            }
        }
    }

    /** To be added to a {@code nanoTime}: ns since the epoch. */
    long offset() {
        return offset;
    }
}
