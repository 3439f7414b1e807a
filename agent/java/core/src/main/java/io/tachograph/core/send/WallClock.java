package io.tachograph.core.send;

import java.time.Instant;
import java.util.function.Supplier;

/**
 * Converts {@code System.nanoTime()} to time since the Unix epoch. The offset between the two
 * clocks is measured repeatedly, so that the recorder follows changes of the wall clock; a segment
 * keeps its initial offset, so its durations have no jump.
 */
final class WallClock {
    private static final int TRIES = 3;

    private final Supplier<Instant> wall;
    private long offset;

    WallClock() {
        this(Instant::now);
    }

    /**
     * @param wall the current time; may jump in either direction
     */
    WallClock(Supplier<Instant> wall) {
        this.wall = wall;
        update();
    }

    /** Measures the offset. Of several readings it uses the one with the shortest duration. */
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

    /** Offset to add to a {@code nanoTime} to get ns since the epoch. */
    long offset() {
        return offset;
    }
}
