package io.tachograph.core.send;

import java.util.Arrays;

/**
 * Number of recorded calls of each operation; aggregated calls are not included. The sender's
 * thread counts them when it reads the rings, so counting costs the program nothing. For use on the
 * sender's thread only.
 */
public final class CallCounts {
    private long[] entered = new long[1_024];

    void enter(int operation) {
        if (operation >= entered.length) {
            entered = Arrays.copyOf(entered, Integer.highestOneBit(operation) * 2);
        }
        entered[operation]++;
    }

    /** Number of recorded calls of an operation since the start of the process. */
    public long of(int operation) {
        return operation < entered.length ? entered[operation] : 0;
    }

    /** Upper bound of the operation ids seen, exclusive. */
    public int end() {
        return entered.length;
    }
}
