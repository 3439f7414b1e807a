package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Selects the recorded traces when the setting {@code traces_max} limits them; created only then. A
 * trace is recorded whole or not at all: decided once, where it begins ({@link TraceGate}); its
 * calls on other threads follow the decision.
 *
 * <p>Each operation with which traces begin, the <i>entry operation</i>, has its own share ({@link
 * TraceEntry}). Shares are recomputed every second from the second before, by the method of
 * Jaeger's adaptive sampling (Shkuro, Mastering Distributed Tracing, 2019, ch. 8): a probability
 * for each operation and a rate up to which every trace is recorded. The number of traces per time
 * is adapted as in Dapper (Sigelman et al., 2010, sec. 4.4).
 *
 * <p>After: {@code io.tachograph.core.cost.TraceKeeper}, which sets the shares.
 */
public final class Traces {
    /** Entry operations with their own share; the others have one in common. */
    static final int ENTRIES_MAX = 512;

    private static final int TABLE_FIRST = 1_024;

    private final long perSecondMax;

    /** Traces of this second that belong to no share: first come, first served. */
    private final AtomicInteger spare;

    private final TraceEntry others;

    /**
     * By operation. Read without the lock: a missed entry is looked up again under it; a found
     * entry is usable, since its initial state is in final fields, or zero.
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
     * Takes a lock on a thread of the program, as {@link Operations} and {@link CallPairs} do: only
     * when an operation begins a trace for the first time, by the threads that do so at that
     * moment, so at most once per operation and thread, for some hundred ns. The lock is never held
     * while waiting.
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

    /** Takes one trace beyond the shares; writes no shared field when none is left. */
    boolean takeSpare() {
        return spare.get() > 0 && spare.getAndDecrement() > 0;
    }

    // ---- for the thread that sets the shares ----

    /** Value of {@code traces_max}. */
    public long perSecondMax() {
        return perSecondMax;
    }

    /** Known entry operations, by index; must not be modified. */
    public TraceEntry[] entries() {
        return all;
    }

    /** Sets the number of traces beyond the shares for the next second. */
    public void spare(int count) {
        spare.set(count);
    }
}
