package io.tachograph.core.cost;

import java.util.ArrayList;
import java.util.List;

/** Measurements between two readings of the counts. */
public final class Window {
    public final long elapsedNanos;

    /** Processor time of the whole process; 0 if it is unknown. */
    public final long processNanos;

    /** Busy time of the agent's sender. */
    public final long senderNanos;

    final List<Calls> calls = new ArrayList<>();

    /** Calls of one operation in the window. */
    static final class Calls {
        final int operation;
        final long recorded;
        final long aggregated;

        /**
         * True if the operation is a single method. Other operations, such as {@code (other)},
         * cannot be aggregated or switched off.
         */
        final boolean movable;

        Calls(int operation, long recorded, long aggregated, boolean movable) {
            this.operation = operation;
            this.recorded = recorded;
            this.aggregated = aggregated;
            this.movable = movable;
        }
    }

    private double callNanos;

    /** Cost of the calls in unrecorded traces. */
    double unsampledNanos;

    public Window(long elapsedNanos, long processNanos, long senderNanos) {
        this.elapsedNanos = elapsedNanos;
        this.processNanos = processNanos;
        this.senderNanos = senderNanos;
    }

    /**
     * Adds the calls of one operation.
     *
     * @param recorded number of recorded calls
     * @param aggregated number of counted calls
     * @param movable true if the operation is a single method
     * @return their cost, ns
     */
    public double add(int operation, long recorded, long aggregated, boolean movable, Costs costs) {
        calls.add(new Calls(operation, recorded, aggregated, movable));
        double nanos = recorded * costs.recordNanos + aggregated * costs.aggregateNanos;
        callNanos += nanos;
        return nanos;
    }

    /**
     * Adds the calls in unrecorded traces.
     *
     * @return their cost, ns
     */
    public double addUnsampled(long calls, Costs costs) {
        double nanos = calls * costs.unsampledNanos;
        unsampledNanos += nanos;
        callNanos += nanos;
        return nanos;
    }

    long recorded() {
        return calls.stream().mapToLong(each -> each.recorded).sum();
    }

    /** The agent's share of the processor time of the process. */
    public double overhead() {
        double nanos = callNanos + senderNanos;
        return processNanos == 0 ? 0 : nanos / processNanos;
    }
}
