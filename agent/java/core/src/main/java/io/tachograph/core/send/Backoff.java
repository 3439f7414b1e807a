package io.tachograph.core.send;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Exponential back-off between connection attempts. Jitter keeps many agents from reconnecting at
 * the same time.
 */
final class Backoff {
    private static final long FIRST_NANOS = 100_000_000;
    private static final long LAST_NANOS = 5_000_000_000L;

    private long next = FIRST_NANOS;

    /** Resets the back-off after a successful attempt. */
    void reset() {
        next = FIRST_NANOS;
    }

    /** @return ns to wait: at least half of the current step, at most the whole step */
    long next() {
        long step = next;
        next = Math.min(LAST_NANOS, next * 2);
        return step / 2 + ThreadLocalRandom.current().nextLong(step / 2 + 1);
    }
}
