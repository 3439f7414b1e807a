package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which traces are kept, where the setting {@code traces_max} does not let all of them be. Made
 * only then. A trace is kept or left out whole: decided once, where it begins ({@link TraceGate}),
 * and everything that it does elsewhere follows.
 *
 * <p>Each operation with which traces begin, the <i>entry operation</i>, has a share of its own
 * ({@link TraceEntry}). Shares are set anew every second by what was seen in the one before: the
 * method of Jaeger's adaptive sampling (Shkuro, Mastering Distributed Tracing, 2019, ch. 8), which
 * has a probability for each operation and a rate below which nothing is left out; what is adapted
 * is the number of traces in a time, as in Dapper (Sigelman et al., 2010, sec. 4.4).
 *
 * <p>After: {@code io.tachograph.core.cost.TraceKeeper}, which sets the shares.
 */
public final class Traces {
    /** Entry operations with a share of their own; the others have one together. */
    static final int ENTRIES_MAX = 512;

    private static final int TABLE_FIRST = 1_024;

    private final long perSecondMax;

    /** What no entry operation has a claim to, in this second: first come, first served. */
    private final AtomicInteger spare;

    private final TraceEntry others;

    /**
     * By operation. Read without the lock: an entry that is missed is looked for again with it, one
     * that is found is complete, since what it begins with is in final fields, or zero.
     */
    private volatile TraceEntry[] table = new TraceEntry[TABLE_FIRST];

    /** By their index. */
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
     * With a lock on a thread of the program, as in {@link Operations} and {@link CallPairs}: when
     * an operation begins a trace for the first time, by the threads that do so at this moment, so
     * no more often than there are operations and threads, for some hundred ns. Nothing is waited
     * for inside of it.
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

    /** One trace more than the shares allow; no shared write where there is nothing left. */
    boolean takeSpare() {
        return spare.get() > 0 && spare.getAndDecrement() > 0;
    }

    // ---- for the one who sets the shares: one thread ----

    /** The setting. */
    public long perSecondMax() {
        return perSecondMax;
    }

    /** Entry operations seen so far, by index; not to be changed. */
    public TraceEntry[] entries() {
        return all;
    }

    /** Traces beyond the shares, for the second that begins now. */
    public void spare(int count) {
        spare.set(count);
    }
}
