package io.tachograph.core.send;

import java.util.Arrays;

/**
 * How many calls of each operation came out of the rings. Kept by the sender's thread, where they
 * pass anyway, so that counting costs the program nothing; to be read on that thread only.
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

    /** No operation from here on was seen. */
    public int end() {
        return entered.length;
    }
}
