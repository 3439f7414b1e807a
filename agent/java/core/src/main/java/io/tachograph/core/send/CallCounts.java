package io.tachograph.core.send;

import java.util.Arrays;

/**
 * Number of recorded calls of each operation since the start, without aggregated calls. Only the
 * sender's thread uses the counts, so counting costs the program nothing.
 */
public final class CallCounts {
    private long[] entered = new long[1_024];

    void enter(int operation) {
        if (operation >= entered.length) {
            entered = Arrays.copyOf(entered, Integer.highestOneBit(operation) * 2);
        }
        entered[operation]++;
    }

    public long of(int operation) {
        return operation < entered.length ? entered[operation] : 0;
    }

    /** Upper bound of the operation ids seen, exclusive. */
    public int end() {
        return entered.length;
    }
}
