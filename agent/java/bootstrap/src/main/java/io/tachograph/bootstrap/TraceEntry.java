package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * An operation with which traces begin, and its share of the recorded traces. The operations after
 * the first {@link Traces#ENTRIES_MAX} share one object. The share has two parts: a probability,
 * which spreads the recorded traces over the second, and a number of permits, which limits bursts.
 * The first trace of each entry is always recorded.
 */
public final class TraceEntry {
    /** Upper bound of the random numbers, exclusive. */
    static final long CHANCES = 1L << 31;

    private final Traces traces;
    private final int operation;
    private final int index;
    private final AtomicInteger permits = new AtomicInteger(1);

    /**
     * Traces with a random number below this value are not recorded. It must be 0 initially: if the
     * constructor wrote another value, a thread that finds this object without a lock ({@link
     * Traces}) might not see it.
     */
    private volatile long from;

    TraceEntry(Traces traces, int operation, int index) {
        this.traces = traces;
        this.operation = operation;
        this.index = index;
    }

    /**
     * Decides whether a trace is recorded. If the probability excludes the trace, no shared field
     * is written.
     *
     * @param random from 0 to {@link #CHANCES}, exclusive
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

    /** Negative if several threads tried to take the last permit. */
    public int permits() {
        return permits.get();
    }

    /**
     * Sets the share for the next second.
     *
     * @param chance probability, from 0 to 1
     * @param more number of permits to add to the remaining ones; may be negative
     */
    public void give(double chance, int more) {
        from = CHANCES - (long) (chance * CHANCES);
        permits.addAndGet(more);
    }
}
