package io.tachograph.core.send;

import java.util.Arrays;

/**
 * Calls of each operation read from the rings. Counted on the sender's thread, which reads the
 * events anyway, so that counting costs the program nothing; for use on that thread only.
 */
public final class CallCounts {
    private long[] entered = new long[1_024];

    void enter(int operation) {
        if (operation >= entered.length) {
            entered = Arrays.copyOf(entered, Integer.highestOneBit(operation) * 2);
        }
        entered[operation]++;
    }

    /** Calls of an operation since the process began. */
    public long of(int operation) {
        return operation < entered.length ? entered[operation] : 0;
    }

    /** Upper bound of the operations seen, exclusive. */
    public int end() {
        return entered.length;
    }
}
