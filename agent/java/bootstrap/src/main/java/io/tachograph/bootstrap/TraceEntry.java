package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * One entry operation and its share of the recorded traces: a probability, which spreads them over
 * the second, and a number of permits, which limits their rate during bursts. The first trace of an
 * operation is always recorded.
 */
public final class TraceEntry {
    /** Upper bound of random numbers, exclusive. */
    static final long CHANCES = 1L << 31;

    private final Traces traces;
    private final int operation;
    private final int index;
    private final AtomicInteger permits = new AtomicInteger(1);

    /**
     * Random numbers below this are rejected. Initially 0, which is also the value for a thread
     * that found this object without a lock and sees only its final fields ({@link Traces}).
     */
    private volatile long from;

    TraceEntry(Traces traces, int operation, int index) {
        this.traces = traces;
        this.operation = operation;
        this.index = index;
    }

    /**
     * Decides whether a trace is recorded. A rejection by probability writes no shared field.
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

    // ---- for the thread that sets the shares ----

    public int operation() {
        return operation;
    }

    /** Remaining permits; may be negative briefly when threads race. */
    public int permits() {
        return permits.get();
    }

    /**
     * Sets the share for the next second.
     *
     * @param chance from 0 to 1
     * @param more permits to add to the remaining ones; may be negative
     */
    public void give(double chance, int more) {
        from = CHANCES - (long) (chance * CHANCES);
        permits.addAndGet(more);
    }
}
