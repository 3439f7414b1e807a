package io.tachograph.core.cost;

import java.util.ArrayList;
import java.util.List;

/** Measurements between two readings of the counts. */
public final class Window {
    public final long elapsedNanos;

    /** Processor time of the whole process; 0 if unknown. */
    public final long processNanos;

    /** Busy time of the agent's sender. */
    public final long senderNanos;

    final List<Calls> calls = new ArrayList<>();

    /** Calls of one operation in the window. */
    static final class Calls {
        final int operation;
        final long recorded;

        /** True for a method: only methods can be aggregated. */
        final boolean movable;

        Calls(int operation, long recorded, boolean movable) {
            this.operation = operation;
            this.recorded = recorded;
            this.movable = movable;
        }
    }

    private double recordNanos;

    /** Cost of calls without a record. */
    private double otherNanos;

    public Window(long elapsedNanos, long processNanos, long senderNanos) {
        this.elapsedNanos = elapsedNanos;
        this.processNanos = processNanos;
        this.senderNanos = senderNanos;
    }

    /**
     * @param recorded recorded calls of the operation
     * @param aggregated counted calls
     * @return their cost, ns
     */
    public double add(int operation, long recorded, long aggregated, boolean movable, Costs costs) {
        calls.add(new Calls(operation, recorded, movable));
        double records = recorded * costs.recordNanos;
        double counts = aggregated * costs.aggregateNanos;
        recordNanos += records;
        otherNanos += counts;
        return records + counts;
    }

    /**
     * @param calls of unrecorded traces
     * @return their cost, ns
     */
    public double addLeftOut(long calls, Costs costs) {
        double nanos = calls * costs.leftOutNanos;
        otherNanos += nanos;
        return nanos;
    }

    long recorded() {
        return calls.stream().mapToLong(each -> each.recorded).sum();
    }

    /** The agent's share of the processor time of the process. */
    public double overhead() {
        return share(recordNanos + otherNanos + senderNanos);
    }

    /** The share that does not shrink with fewer traces. */
    double overheadWithoutTraces() {
        return share(otherNanos);
    }

    private double share(double nanos) {
        return processNanos == 0 ? 0 : nanos / processNanos;
    }
}
