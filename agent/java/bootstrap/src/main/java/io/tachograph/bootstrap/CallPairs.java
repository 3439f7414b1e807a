package io.tachograph.bootstrap;

import java.util.HashSet;
import java.util.Set;

/**
 * Selects the pairs of operation and caller that are counted separately. The number of pairs is
 * bounded, because each pair becomes some twenty series. Past {@link #OWN_MAX} a new pair is
 * counted with the caller {@code (other)}; past {@link #PAIRS_MAX}, if its operation has
 * no pair with that caller, it is counted under one common pair. The sums stay complete. {@link
 * #admit} takes a lock, but runs at most once for each pair and {@link ThreadBuffer}.
 */
final class CallPairs {
    /** Maximum number of pairs, not counting {@link #REST}. */
    static final int PAIRS_MAX = 512;

    /**
     * Maximum number of pairs with their own caller. The remaining pairs are reserved for
     * operations with the caller {@code (other)}.
     */
    static final int OWN_MAX = 384;

    /** The common pair: operation and caller are both {@code (other)}. */
    static final long REST = -1;

    private final Set<Long> known = new HashSet<>();
    private final long other;

    CallPairs(Operations operations) {
        this.other = operations.other(Operations.METHOD);
    }

    /**
     * @param pair operation in the upper half, caller in the lower half
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
