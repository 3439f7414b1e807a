package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The counts of one {@link ThreadBuffer} for one pair of operation and caller: total duration,
 * longest call, failed calls, and a histogram. Only the thread that owns the buffer writes them, and
 * the sender may read them at any time. The longest call is kept for each interval of the sender.
 * All other values never decrease.
 *
 * <pre>
 *   0     1                    2                    3        4 ... 21
 *   +-----+--------------------+--------------------+--------+----------------------+
 *   | sum | longest call of even and odd intervals   | failed | calls of each bucket |
 *   +-----+--------------------+--------------------+--------+----------------------+
 *           interval | longest   (22 and 42 bits)
 * </pre>
 *
 * The number of calls is the sum of the buckets.
 */
public final class Tally {
    /** Upper bounds of the buckets, ns, inclusive. One more bucket has no bound. */
    private static final long[] BOUNDS = bounds();

    private static final int SUM = 0;
    private static final int LONGEST = 1;
    private static final int FAILED = 3;
    private static final int BUCKETS = 4;

    private static final int LONGEST_BITS = 42;
    private static final long LONGEST_MAX = (1L << LONGEST_BITS) - 1;
    private static final int INTERVAL_MASK = (1 << 22) - 1;

    /** By k: the cell of the bucket for durations above 2^(k-1) ns and up to 2^k ns. */
    private static final byte[] CELL_OF_BITS = cellOfBits();

    private static final VarHandle CELLS = MethodHandles.arrayElementVarHandle(long[].class);

    /**
     * Number of the sender's current interval. The longest call is reported for each interval
     * separately. Two cells alternate, so that the sender reads one cell while the thread writes
     * the other.
     */
    private static volatile int interval;

    private final int operation;
    private final int caller;
    private final long[] cells = new long[BUCKETS + BOUNDS.length + 1];

    Tally(int operation, int caller) {
        this.operation = operation;
        this.caller = caller;
    }

    /**
     * Bounds rise by factor 2 up to 16 us, the range of tiny methods, and by factor 4 from there up
     * to 1 s.
     */
    private static long[] bounds() {
        long[] bounds = new long[17];
        for (int at = 0; at < bounds.length; at++) {
            bounds[at] = 1L << (at < 9 ? 6 + at : 14 + 2 * (at - 8));
        }
        return bounds;
    }

    private static byte[] cellOfBits() {
        byte[] cells = new byte[65];
        for (int bits = 0; bits < cells.length; bits++) {
            int bucket = 0;
            while (bucket < BOUNDS.length && (bits > 62 || 1L << bits > BOUNDS[bucket])) {
                bucket++;
            }
            cells[bits] = (byte) (BUCKETS + bucket);
        }
        return cells;
    }

    /** Adds a finished call. Called by the thread that owns the buffer. */
    void add(long nanos, boolean hasFailed) {
        long[] all = cells;
        int bits = 64 - Long.numberOfLeadingZeros(nanos > 0 ? nanos - 1 : 0);
        int cell = CELL_OF_BITS[bits];
        // The method call that needs the most stack comes first. If the call overflows the stack,
        // no count has changed. The sender sees the following plain stores at the latest after the
        // release store of the next counted call.
        CELLS.setRelease(all, cell, all[cell] + 1);
        all[SUM] += nanos;
        int now = interval;
        int slot = LONGEST + (now & 1);
        long longest = all[slot];
        long mine = (long) now << LONGEST_BITS | Math.min(nanos, LONGEST_MAX);
        if (longest >>> LONGEST_BITS != now || mine > longest) {
            all[slot] = mine;
        }
        if (hasFailed) {
            all[FAILED]++;
        }
    }

    // ---- the sender's side ----

    /** Ends an interval. @return its number, for {@link #longestNanos} */
    public static int nextInterval() {
        int ended = interval;
        interval = ended + 1 & INTERVAL_MASK;
        return ended;
    }

    public int operation() {
        return operation;
    }

    /** Operation of the caller; 0 if there is none. */
    public int caller() {
        return caller;
    }

    public long sumNanos() {
        return cells[SUM];
    }

    public long failed() {
        return cells[FAILED];
    }

    /** The longest call that ended in an interval; 0 if no call ended. */
    public long longestNanos(int ofInterval) {
        long longest = cells[LONGEST + (ofInterval & 1)];
        return longest >>> LONGEST_BITS == ofInterval ? longest & LONGEST_MAX : 0;
    }

    /**
     * Number of calls in a bucket: their duration is above the bound of the previous bucket and at
     * most the bound of {@code bucket}.
     */
    public long bucket(int bucket) {
        return (long) CELLS.getAcquire(cells, BUCKETS + bucket);
    }

    /** Number of buckets, with the unbounded one. */
    public static int buckets() {
        return BOUNDS.length + 1;
    }

    /** Upper bound, ns, of a bucket; the last bucket has none. */
    public static long boundNanos(int bucket) {
        return BOUNDS[bucket];
    }
}
