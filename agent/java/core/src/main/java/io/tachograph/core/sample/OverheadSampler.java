package io.tachograph.core.sample;

import io.tachograph.bootstrap.Operations;
import io.tachograph.core.cost.Calibration;
import io.tachograph.core.cost.Costs;
import io.tachograph.core.cost.Limits;
import io.tachograph.core.cost.Window;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.send.Sender;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * Measures the overhead of the agent, and applies the limits on overhead and on rates of calls.
 *
 * <pre>
 *   overhead = (sum of calls * measured cost of a call + time of the sender)
 *              / processor time of the process
 * </pre>
 */
final class OverheadSampler implements Sampler {
    /** After each window, at most this number of the costliest operations get their own series. */
    private static final int TOP = 20;

    private static final int OWN_MAX = 64;
    private static final double NANOS = 1e9;

    private final SeriesMaker maker;
    private final Sender sender;
    private final OperationSampler aggregated;

    /** Null if all traces are recorded. */
    private final TraceSampler traces;

    private final Calibration calibration;
    private final Limits limits;
    private final Moves moves;

    private final Series ratio;
    private final Series moved;
    private final Series recordCost;
    private final Series aggregateCost;
    private final Series unsampledCost;
    private final Map<Integer, Cost> own = new LinkedHashMap<>();
    private final Cost rest;
    private final Cost unsampled;
    private final Cost senderCost;

    private long[] recordedBefore = new long[0];
    private Map<Integer, Long> aggregatedBefore = Map.of();
    private long before;
    private long processBefore;
    private long senderBefore;

    /** Cost of one or several operations, since the start of their series. */
    private static final class Cost {
        final Series series;
        double seconds;

        Cost(Series series) {
            this.series = series;
        }
    }

    /** Cost of one operation in a window. */
    private static final class Spent {
        final int operation;
        final double nanos;

        Spent(int operation, double nanos) {
            this.operation = operation;
            this.nanos = nanos;
        }
    }

    OverheadSampler(
            SeriesMaker maker,
            Sender sender,
            OperationSampler aggregated,
            TraceSampler traces,
            Calibration calibration,
            Limits limits,
            Moves moves) {
        this.maker = maker;
        this.sender = sender;
        this.aggregated = aggregated;
        this.traces = traces;
        this.calibration = calibration;
        this.limits = limits;
        this.moves = moves;
        this.ratio = maker.of("tacho_agent_overhead_ratio");
        this.moved = maker.of("tacho_agent_moved_operations");
        this.recordCost = maker.of("tacho_agent_call_seconds", "mode", "record");
        this.aggregateCost = maker.of("tacho_agent_call_seconds", "mode", "aggregate");
        this.unsampledCost = maker.of("tacho_agent_call_seconds", "mode", "unsampled");
        this.rest = cost("(rest)");
        this.unsampled = cost("(unsampled)");
        this.senderCost = cost("(sender)");
    }

    private Cost cost(String operation) {
        return new Cost(maker.of("tacho_agent_overhead_seconds_total", "operation", operation));
    }

    /** Processor time of all threads; 0 if the system does not provide it. */
    private static long processNanos() {
        return ProcessHandle.current().info().totalCpuDuration().map(Duration::toNanos).orElse(0L);
    }

    @Override
    public void sample(SampleBatch into) {
        Costs costs = calibration.costs();
        long now = System.nanoTime();
        long process = processNanos();
        long busy = sender.busyNanos();
        if (before == 0) {
            // A reading in the constructor would delay the start of the program.
            before = now;
            processBefore = process;
            senderBefore = busy;
            return;
        }
        Window window = new Window(now - before, process - processBefore, busy - senderBefore);
        PriorityQueue<Spent> costliest =
                new PriorityQueue<>((a, b) -> Double.compare(a.nanos, b.nanos));
        rest.seconds += spend(window, costs, costliest) / NANOS;
        promote(costliest);
        if (traces != null) {
            unsampled.seconds += window.addUnsampled(traces.callsUnsampled(), costs) / NANOS;
        }
        senderCost.seconds += window.senderNanos / NANOS;
        before = now;
        processBefore = process;
        senderBefore = busy;
        judge(window, costs);
        if (costs.areKnown()) {
            tell(window, costs, into);
        }
    }

    /**
     * @param costliest gets the costliest operations without their own series, at most {@link #TOP}
     * @return cost of all operations without their own series, ns
     */
    private double spend(Window window, Costs costs, PriorityQueue<Spent> costliest) {
        int end = sender.calls().end();
        if (recordedBefore.length < end) {
            recordedBefore = Arrays.copyOf(recordedBefore, end);
        }
        Map<Integer, Long> counted = aggregated.callsByOperation();
        double others = 0;
        for (int operation = 1; operation < end; operation++) {
            long recorded = sender.calls().of(operation) - recordedBefore[operation];
            long aggregates =
                    counted.getOrDefault(operation, 0L)
                            - aggregatedBefore.getOrDefault(operation, 0L);
            if (recorded > 0 || aggregates > 0) {
                recordedBefore[operation] += recorded;
                double nanos =
                        window.add(operation, recorded, aggregates, isMethod(operation), costs);
                Cost known = own.get(operation);
                if (known != null) {
                    known.seconds += nanos / NANOS;
                } else {
                    others += nanos;
                    costliest.add(new Spent(operation, nanos));
                    if (costliest.size() > TOP) {
                        costliest.remove();
                    }
                }
            }
        }
        aggregatedBefore = counted;
        return others;
    }

    private static boolean isMethod(int operation) {
        Operations.Entry entry = Operations.shared().entry(operation);
        return entry != null
                && entry.kind == Operations.METHOD
                && !entry.name.equals(Operations.OTHER);
    }

    /**
     * Gives the costliest operations their own series. The common series keeps their earlier cost.
     */
    private void promote(PriorityQueue<Spent> costliest) {
        Spent[] sorted = costliest.toArray(new Spent[0]);
        Arrays.sort(sorted, (a, b) -> Double.compare(b.nanos, a.nanos));
        for (Spent spent : sorted) {
            if (own.size() < OWN_MAX && spent.nanos > 0) {
                own.put(spent.operation, cost(OperationSampler.label(spent.operation)));
            }
        }
    }

    private void judge(Window window, Costs costs) {
        Limits.Verdict verdict = limits.judge(window, costs, moves::isMoved, moves::isOff);
        for (Limits.Move move : verdict.aggregated) {
            moves.aggregate(move.operation, move.reason);
        }
        for (Limits.Move move : verdict.off) {
            moves.switchOff(move.operation, move.reason);
        }
        if (!verdict.exhausted.isEmpty()) {
            moves.exhausted(verdict.exhausted);
        } else if (verdict.kept) {
            moves.relieved();
        }
    }

    private void tell(Window window, Costs costs, SampleBatch into) {
        if (window.processNanos > 0) {
            into.add(ratio, window.overhead());
        }
        into.add(moved, (long) moves.size());
        into.add(recordCost, costs.recordNanos / NANOS);
        into.add(aggregateCost, costs.aggregateNanos / NANOS);
        if (traces != null) {
            into.add(unsampledCost, costs.unsampledNanos / NANOS)
                    .add(unsampled.series, unsampled.seconds);
        }
        into.add(rest.series, rest.seconds).add(senderCost.series, senderCost.seconds);
        own.values().forEach(cost -> into.add(cost.series, cost.seconds));
    }
}
