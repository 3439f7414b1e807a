package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * One entry operation and its share of the traces that are kept: a chance, so that those kept are
 * spread over the second, and a number of permits, so that their rate holds also when there are
 * suddenly more. The first trace of an operation is always kept.
 */
public final class TraceEntry {
    /** Random numbers are below this. */
    static final long CHANCES = 1L << 31;

    private final Traces traces;
    private final int operation;
    private final int index;
    private final AtomicInteger permits = new AtomicInteger(1);

    /**
     * Random numbers below this have no chance. 0 at first, which is what a thread sees, too, that
     * found this object without a lock, and perhaps nothing but its final fields ({@link Traces}).
     */
    private volatile long from;

    TraceEntry(Traces traces, int operation, int index) {
        this.traces = traces;
        this.operation = operation;
        this.index = index;
    }

    /**
     * Is this trace kept? Where it has no chance, nothing that threads share is written.
     *
     * @param random from 0, below {@link #CHANCES}
     */
    boolean admits(long random) {
        return random >= from
                && (permits.get() > 0 && permits.getAndDecrement() > 0 || traces.takeSpare());
    }

    int index() {
        return index;
    }

    // ---- for the one who sets the shares: one thread ----

    public int operation() {
        return operation;
    }

    /** Traces that may still be kept; below 0 for some moments where threads meet. */
    public int permits() {
        return permits.get();
    }

    /**
     * The share for the second that begins now.
     *
     * @param chance from 0 to 1
     * @param more permits beside those that are left; may be negative
     */
    public void give(double chance, int more) {
        from = CHANCES - (long) (chance * CHANCES);
        permits.addAndGet(more);
    }
}
