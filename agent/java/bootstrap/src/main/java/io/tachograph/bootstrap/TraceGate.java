package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * Decides for one thread which traces are recorded, and counts them. Only the thread that holds the
 * buffer writes; any thread may read. The counts never decrease: the next owner of the buffer
 * continues them.
 *
 * <pre>
 *   0                1      2          3               4
 *   +----------------+------+----------+---------------+-------------------+------
 *   | calls excluded | kept | excluded | follows, kept | follows, excluded | ...   four for each
 *   +----------------+------+----------+---------------+-------------------+-----   entry operation
 * </pre>
 *
 * Cell 0 counts the calls in all unrecorded traces. The other cells count traces by <i>entry
 * operation</i>, the operation with which they begin: <i>kept</i> means recorded, <i>excluded</i>
 * means not recorded. A trace <i>follows</i> if another process, the caller of this one, has
 * already decided whether the trace is recorded.
 */
public final class TraceGate {
    private static final int CALLS = 0;
    private static final int FIRST = 1;
    private static final int CELLS = 4;
    private static final int KEPT = 0;
    private static final int UNSAMPLED = 1;
    private static final int FOLLOWS_KEPT = 2;
    private static final int FOLLOWS_UNSAMPLED = 3;

    private static final int ENTRIES_FIRST = 8;
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final VarHandle COUNTS = MethodHandles.arrayElementVarHandle(long[].class);

    private final Traces traces;
    private final Buffers home;

    /** State of SplitMix64; see {@link Session#mix64}. */
    private long random;

    private volatile long[] counts = new long[FIRST + CELLS * ENTRIES_FIRST];

    /**
     * Parent of the current unrecorded trace, null if it has none; after a call of {@link
     * #context()}, the context for the calls that this trace causes. Null if the current trace is
     * recorded.
     */
    private Context context;

    TraceGate(Buffers home, long seed) {
        this.traces = home.traces();
        this.home = home;
        this.random = Session.mix64(seed);
    }

    // ---- on the program's thread ----

    /**
     * Decides whether a trace is recorded. Called when its outermost call begins.
     *
     * @param operation the operation of the outermost call
     * @param cause the call in another thread or process that caused this call; null if there is
     *     none
     * @return true if the trace is recorded; false if it is not, and the caller must then call
     *     {@link #close} when the outermost call ends
     */
    boolean isKept(int operation, Context cause) {
        boolean isKept;
        if (cause == null) {
            TraceEntry entry = traces.entry(operation);
            random += GOLDEN;
            isKept = entry.admits(Session.mix64(random) >>> 33);
            count(FIRST + CELLS * entry.index() + (isKept ? KEPT : UNSAMPLED));
        } else {
            isKept = cause.isSampled();
            if (cause.isFromHeader()) {
                int first = FIRST + CELLS * traces.entry(operation).index();
                count(first + (isKept ? FOLLOWS_KEPT : FOLLOWS_UNSAMPLED));
            }
        }
        context = isKept ? null : cause;
        return isKept;
    }

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
     * Context of the trace that is not recorded, for other threads and processes: they do not
     * record the trace either. A trace that began here gets ids in the same way as a recorded
     * trace.
     */
    Context context() {
        if (context == null) {
            Session session = home.session();
            long number = home.takeSegments(1);
            long span = Session.mix64(session.base(number));
            context = Context.unsampled(session.high(), session.traceLow(number), span);
        } else if (context.isFromHeader()) {
            context = Context.unsampled(context.traceHigh(), context.traceLow(), context.span());
        }
        return context;
    }

    /** Ends the outermost call of a trace that is not recorded. */
    void close() {
        context = null;
    }

    // ---- for other threads ----

    /** Number of calls in all unrecorded traces. */
    public long callsUnsampled() {
        return cell(CALLS);
    }

    /** Number of recorded traces that began here. @param index of the entry operation */
    public long kept(int index) {
        return cell(FIRST + CELLS * index + KEPT);
    }

    /** Number of unrecorded traces that began here. */
    public long unsampled(int index) {
        return cell(FIRST + CELLS * index + UNSAMPLED);
    }

    /** Number of traces from another process that records them. */
    public long followsKept(int index) {
        return cell(FIRST + CELLS * index + FOLLOWS_KEPT);
    }

    /** Number of traces from another process that does not record them. */
    public long followsUnsampled(int index) {
        return cell(FIRST + CELLS * index + FOLLOWS_UNSAMPLED);
    }

    private long cell(int cell) {
        long[] cells = counts;
        return cell < cells.length ? (long) COUNTS.getAcquire(cells, cell) : 0;
    }
}
