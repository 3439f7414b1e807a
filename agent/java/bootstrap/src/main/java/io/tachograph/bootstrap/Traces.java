package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Selects the traces to record, under the setting {@code traces_max}. A trace is recorded as a
 * whole or not at all. {@link TraceGate} decides once, at the start of the trace, and calls of the
 * trace on other threads follow the decision.
 *
 * <p>An operation with which traces begin is called an <i>entry operation</i>. Each of the first
 * {@link #ENTRIES_MAX} has its own share ({@link TraceEntry}); the others have a common one. Every
 * second, the shares are computed from the traces of the previous second. The method is Jaeger's
 * adaptive sampling (Shkuro, Mastering Distributed Tracing, 2019, ch. 8): a probability for each
 * operation, and a rate up to which every trace is recorded. The number of traces per second is
 * adapted as in Dapper (Sigelman et al., 2010, sec. 4.4).
 *
 * <p>After: {@code io.tachograph.core.cost.TraceKeeper}, which sets the shares.
 */
public final class Traces {
    /** Maximum number of entry operations with their own share; the others have a common one. */
    static final int ENTRIES_MAX = 512;

    private static final int TABLE_FIRST = 1_024;

    private final long perSecondMax;

    /** Number of traces that may still be recorded in this second in addition to the shares. */
    private final AtomicInteger spare;

    private final TraceEntry others;

    /**
     * Entries by operation. Threads read the table without the lock. A thread that does not find an
     * entry looks again under the lock. A found entry is usable, because its initial state is zero
     * or in final fields.
     */
    private volatile TraceEntry[] table = new TraceEntry[TABLE_FIRST];

    /** Entries by their index. */
    private volatile TraceEntry[] all;

    Traces(long perSecondMax) {
        this.perSecondMax = perSecondMax;
        this.spare = new AtomicInteger((int) Math.min(Integer.MAX_VALUE, perSecondMax));
        this.others = new TraceEntry(this, Operations.shared().other(Operations.METHOD), 0);
        this.all = new TraceEntry[] {others};
    }

    // ---- on the program's threads ----

    TraceEntry entry(int operation) {
        TraceEntry[] known = table;
        TraceEntry entry = operation < known.length ? known[operation] : null;
        return entry != null ? entry : add(operation);
    }

    /**
     * Adds an entry operation. A thread of the program takes a lock here, as in {@link Operations}
     * and {@link CallPairs}, but only at the first trace of an operation. A thread waits for
     * nothing while it holds the lock.
     */
    private synchronized TraceEntry add(int operation) {
        TraceEntry[] known = table;
        if (operation >= known.length) {
            known = Arrays.copyOf(known, 2 * Integer.highestOneBit(operation));
        }
        TraceEntry entry = known[operation];
        if (entry == null) {
            entry = all.length > ENTRIES_MAX ? others : fresh(operation);
            known[operation] = entry;
        }
        table = known; // also publishes the element
        return entry;
    }

    private TraceEntry fresh(int operation) {
        TraceEntry[] more = Arrays.copyOf(all, all.length + 1);
        TraceEntry entry = new TraceEntry(this, operation, all.length);
        more[all.length] = entry;
        all = more;
        return entry;
    }

    /** Writes no shared field if no additional trace is left. */
    boolean takeSpare() {
        return spare.get() > 0 && spare.getAndDecrement() > 0;
    }

    // ---- for the thread that sets the shares ----

    public long perSecondMax() {
        return perSecondMax;
    }

    /** By index. Must not be modified. */
    public TraceEntry[] entries() {
        return all;
    }

    /** Sets the number of additional traces for the next second. */
    public void spare(int count) {
        spare.set(count);
    }
}
