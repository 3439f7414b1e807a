package io.tachograph.core.send;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Exponential back-off between connection attempts. Jitter keeps many agents from reconnecting at
 * the same time.
 */
final class Backoff {
    private final long first;
    private final long last;
    private long next;

    /** With steps from 100 ms to 5 s, for a server that may return at any time. */
    Backoff() {
        this(100_000_000, 5_000_000_000L);
    }

    /**
     * @param first the first step, ns
     * @param last the longest step, ns
     */
    Backoff(long first, long last) {
        this.first = first;
        this.last = last;
        this.next = first;
    }

    /** Called after a successful attempt. */
    void reset() {
        next = first;
    }

    /** @return ns to wait: at least half of the current step, at most the whole step */
    long next() {
        long step = next;
        next = Math.min(last, next * 2);
        return step / 2 + ThreadLocalRandom.current().nextLong(step / 2 + 1);
    }
}
