package io.tachograph.core.cost;

/**
 * What one call costs the program's thread, ns: two reads of the clock and what is written; in a
 * trace that is left out, neither.
 */
public final class Costs {
    /** Not measured yet. */
    public static final Costs UNKNOWN = new Costs(0, 0, 0);

    public final double recordNanos;
    public final double aggregateNanos;

    /** 0 where all traces are kept. */
    public final double leftOutNanos;

    public Costs(double recordNanos, double aggregateNanos, double leftOutNanos) {
        this.recordNanos = recordNanos;
        this.aggregateNanos = aggregateNanos;
        this.leftOutNanos = leftOutNanos;
    }

    /** Of each the lower one. */
    Costs least(Costs other) {
        return !areKnown()
                ? other
                : new Costs(
                        Math.min(recordNanos, other.recordNanos),
                        Math.min(aggregateNanos, other.aggregateNanos),
                        Math.min(leftOutNanos, other.leftOutNanos));
    }

    public boolean areKnown() {
        return recordNanos > 0;
    }
}
