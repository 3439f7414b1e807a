package io.tachograph.core.cost;

/** What one call costs the program's thread, ns: two reads of the clock and what is written. */
public final class Costs {
    /** Not measured yet. */
    public static final Costs UNKNOWN = new Costs(0, 0);

    public final double recordNanos;
    public final double aggregateNanos;

    public Costs(double recordNanos, double aggregateNanos) {
        this.recordNanos = recordNanos;
        this.aggregateNanos = aggregateNanos;
    }

    /** Of each the lower one. */
    Costs least(Costs other) {
        return !areKnown()
                ? other
                : new Costs(
                        Math.min(recordNanos, other.recordNanos),
                        Math.min(aggregateNanos, other.aggregateNanos));
    }

    public boolean areKnown() {
        return recordNanos > 0;
    }
}
