package io.tachograph.bootstrap;

import java.util.HashSet;
import java.util.Set;

/**
 * Selects the pairs of operation and caller that are counted separately. Each pair becomes some
 * twenty series, so their number is bounded: past {@link #OWN_MAX} a new pair is counted with the
 * caller {@code (other)}, past {@link #PAIRS_MAX} under one common pair. The sums stay complete.
 * Called once for each pair and thread.
 */
final class CallPairs {
    /** Maximum number of pairs, not counting {@link #REST}. */
    static final int PAIRS_MAX = 512;

    /** Pairs with their own caller; the remaining pairs are reserved for new operations. */
    static final int OWN_MAX = 384;

    /** Operation and caller are both {@code (other)}. */
    static final long REST = -1;

    private final Set<Long> known = new HashSet<>();
    private final long other;

    CallPairs(Operations operations) {
        this.other = operations.other(Operations.METHOD);
    }

    /**
     * The pair under which calls are counted.
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
