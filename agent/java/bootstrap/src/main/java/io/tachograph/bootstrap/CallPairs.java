package io.tachograph.bootstrap;

import java.util.HashSet;
import java.util.Set;

/**
 * Which pairs of operation and caller are counted by themselves. Each becomes some twenty series,
 * so their number is bounded: past {@link #OWN_MAX} new pairs are one for each operation, past
 * {@link #PAIRS_MAX} one for all. Nothing is lost: the sums hold. Asked once for each pair and
 * thread.
 */
final class CallPairs {
    /** Pairs in all, but for that of the rest. */
    static final int PAIRS_MAX = 512;

    /** Pairs with their own caller; the others are kept for operations not seen yet. */
    static final int OWN_MAX = 384;

    /** The operation is {@code (other)}, and so is the caller. */
    static final long REST = -1;

    private final Set<Long> known = new HashSet<>();
    private final long other;

    CallPairs(Operations operations) {
        this.other = operations.other(Operations.METHOD);
    }

    /**
     * The pair under which to count.
     *
     * @param pair operation in the upper half, caller in the lower
     * @return {@code pair} itself, the same operation called by {@code (other)}, or {@link #REST}
     */
    synchronized long admit(long pair) {
        if (known.contains(pair) || known.size() < OWN_MAX) {
            known.add(pair);
            return pair;
        }
        long byOther = pair & 0xffffffff00000000L | other;
        if (known.contains(byOther) || known.size() < PAIRS_MAX) {
            known.add(byOther);
            return byOther;
        }
        return REST;
    }
}
