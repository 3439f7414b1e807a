package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * Where the traces of one thread are kept or left out, and counted. One writer, the thread that
 * holds the buffer; anybody reads the counts, which only grow: who gets the buffer next goes on.
 *
 * <pre>
 *   0                1      2          3              4
 *   +----------------+------+----------+--------------+------------------+------
 *   | calls left out | kept | left out | follows, kept | follows, left out | ...   four for each
 *   +----------------+------+----------+--------------+------------------+------   entry operation
 * </pre>
 *
 * A trace <i>follows</i> if the process it came from has decided.
 */
public final class TraceGate {
    private static final int CALLS = 0;
    private static final int FIRST = 1;
    private static final int CELLS = 4;
    private static final int KEPT = 0;
    private static final int LEFT_OUT = 1;
    private static final int FOLLOWS_KEPT = 2;
    private static final int FOLLOWS_LEFT_OUT = 3;

    private static final int ENTRIES_FIRST = 8;
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final VarHandle COUNTS = MethodHandles.arrayElementVarHandle(long[].class);

    private final Traces traces;
    private final Buffers home;

    /** SplitMix64, see {@link Session#mix64}. */
    private long random;

    private volatile long[] counts = new long[FIRST + CELLS * ENTRIES_FIRST];

    /**
     * Of the trace that is being left out: who caused it, or what is handed on; null for nobody.
     */
    private Context context;

    TraceGate(Buffers home, long seed) {
        this.traces = home.traces();
        this.home = home;
        this.random = Session.mix64(seed);
    }

    // ---- on the program's thread ----

    /**
     * An outermost call begins.
     *
     * @param operation its operation
     * @param cause the call elsewhere that caused it, null for none
     * @return whether it is recorded with all that it calls; if not, {@link #close} must follow
     */
    boolean isKept(int operation, Context cause) {
        boolean isKept;
        if (cause == null) {
            TraceEntry entry = traces.entry(operation);
            random += GOLDEN;
            isKept = entry.admits(Session.mix64(random) >>> 33);
            count(FIRST + CELLS * entry.index() + (isKept ? KEPT : LEFT_OUT));
        } else {
            isKept = cause.isSampled();
            if (cause.isFromHeader()) {
                int first = FIRST + CELLS * traces.entry(operation).index();
                count(first + (isKept ? FOLLOWS_KEPT : FOLLOWS_LEFT_OUT));
            }
        }
        context = isKept ? null : cause;
        return isKept;
    }

    /** A call is left out with its trace. */
    void countCall() {
        long[] cells = counts;
        COUNTS.setRelease(cells, CALLS, cells[CALLS] + 1);
    }

    private void count(int cell) {
        long[] cells = counts;
        if (cell >= cells.length) {
            cells = Arrays.copyOf(cells, 2 * (cell + CELLS));
            counts = cells;
        }
        COUNTS.setRelease(cells, cell, cells[cell] + 1);
    }

    /**
     * The trace that is being left out, for other threads and processes: they must leave it out,
     * too. Its ids are those that it would have.
     */
    Context context() {
        if (context == null) {
            Session session = home.session();
            long number = home.takeSegments(1);
            long span = Session.mix64(session.base(number));
            context = Context.leftOut(session.high(), session.traceLow(number), span);
        } else if (context.isFromHeader()) {
            context = Context.leftOut(context.traceHigh(), context.traceLow(), context.span());
        }
        return context;
    }

    /** The outermost call of a trace that was left out is over. */
    void close() {
        context = null;
    }

    // ---- for others ----

    /** Calls of all traces that were left out. */
    public long callsLeftOut() {
        return cell(CALLS);
    }

    /** Traces that began here and were kept. @param index of the entry operation */
    public long kept(int index) {
        return cell(FIRST + CELLS * index + KEPT);
    }

    /** Those that began here and were left out. */
    public long leftOut(int index) {
        return cell(FIRST + CELLS * index + LEFT_OUT);
    }

    /** Traces that came from another process, which keeps them. */
    public long followsKept(int index) {
        return cell(FIRST + CELLS * index + FOLLOWS_KEPT);
    }

    /** Those that the other process does not keep. */
    public long followsLeftOut(int index) {
        return cell(FIRST + CELLS * index + FOLLOWS_LEFT_OUT);
    }

    private long cell(int cell) {
        long[] cells = counts;
        return cell < cells.length ? (long) COUNTS.getAcquire(cells, cell) : 0;
    }
}
