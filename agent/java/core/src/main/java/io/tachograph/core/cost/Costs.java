package io.tachograph.core.cost;

/**
 * Cost of one call on the program's thread, ns: two clock reads and the writes. A call in an
 * unrecorded trace only increments a count.
 */
public final class Costs {
    /** Not measured yet. */
    public static final Costs UNKNOWN = new Costs(0, 0, 0);

    public final double recordNanos;
    public final double aggregateNanos;

    /** Cost of a call in an unrecorded trace; 0 if all traces are recorded. */
    public final double unsampledNanos;

    public Costs(double recordNanos, double aggregateNanos, double unsampledNanos) {
        this.recordNanos = recordNanos;
        this.aggregateNanos = aggregateNanos;
        this.unsampledNanos = unsampledNanos;
    }

    /** Returns the lower of both values for each cost; {@code other} if this is {@code UNKNOWN}. */
    Costs least(Costs other) {
        return !areKnown()
                ? other
                : new Costs(
                        Math.min(recordNanos, other.recordNanos),
                        Math.min(aggregateNanos, other.aggregateNanos),
                        Math.min(unsampledNanos, other.unsampledNanos));
    }

    public boolean areKnown() {
        return recordNanos > 0;
    }
}
