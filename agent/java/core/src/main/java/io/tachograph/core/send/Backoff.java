package io.tachograph.core.send;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Exponential back-off between attempts, with jitter, so that many agents do not reconnect at the
 * same time.
 */
final class Backoff {
    private static final long FIRST_NANOS = 100_000_000;
    private static final long LAST_NANOS = 5_000_000_000L;

    private long next = FIRST_NANOS;

    /** The attempt succeeded. */
    void reset() {
        next = FIRST_NANOS;
    }

    /**
     * @return ns to wait, between half and the whole of the step
     */
    long next() {
        long step = next;
        next = Math.min(LAST_NANOS, next * 2);
        return step / 2 + ThreadLocalRandom.current().nextLong(step / 2 + 1);
    }
}
