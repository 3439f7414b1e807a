package io.tachograph.core.cost;

import java.util.ArrayList;
import java.util.List;

/** What happened between two looks at the counts. */
public final class Window {
    public final long elapsedNanos;

    /** Processor time of the whole process; 0 if it cannot be told. */
    public final long processNanos;

    /** Time in which the agent's sender was busy. */
    public final long senderNanos;

    final List<Calls> calls = new ArrayList<>();

    /** Calls of one operation. */
    static final class Calls {
        final int operation;
        final long recorded;

        /** It is a method: others have no way to be aggregated. */
        final boolean movable;

        Calls(int operation, long recorded, boolean movable) {
            this.operation = operation;
            this.recorded = recorded;
            this.movable = movable;
        }
    }

    private double recordNanos;

    /** Of calls that are not records. */
    private double otherNanos;

    public Window(long elapsedNanos, long processNanos, long senderNanos) {
        this.elapsedNanos = elapsedNanos;
        this.processNanos = processNanos;
        this.senderNanos = senderNanos;
    }

    /**
     * @param recorded calls of the operation that are records
     * @param aggregated calls that were counted
     * @return what they cost, ns
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
     * @param calls of traces that were left out
     * @return what they cost, ns
     */
    public double addLeftOut(long calls, Costs costs) {
        double nanos = calls * costs.leftOutNanos;
        otherNanos += nanos;
        return nanos;
    }

    long recorded() {
        return calls.stream().mapToLong(each -> each.recorded).sum();
    }

    /** Of the processor time of the process, the share of the agent. */
    public double overhead() {
        return share(recordNanos + otherNanos + senderNanos);
    }

    /** The share that fewer traces would not make smaller. */
    double overheadWithoutTraces() {
        return share(otherNanos);
    }

    private double share(double nanos) {
        return processNanos == 0 ? 0 : nanos / processNanos;
    }
}
