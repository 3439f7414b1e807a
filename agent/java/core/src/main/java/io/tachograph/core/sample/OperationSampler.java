package io.tachograph.core.sample;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Tally;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The counts of the aggregated operations, summed over the tables of all threads.
 *
 * <p>Before: {@link Tally}. After: {@code io.tachograph.core.send.Sender}.
 */
final class OperationSampler implements Sampler {
    /** Label of calls without an instrumented caller. */
    static final String NO_CALLER = "(none)";

    private static final String NAME = "tacho_operation_seconds";

    /**
     * Interval at which unchanged values are repeated, so that a query over the last five minutes
     * finds them.
     */
    private static final long UNCHANGED_NANOS = 60_000_000_000L;

    private static final int LABEL_BYTES_MAX = 4_096;
    private static final double NANOS = 1e9;

    private final SeriesMaker maker;
    private final Buffers buffers;
    private final int other = Operations.shared().id(Operations.METHOD, Operations.OTHER);
    private final Map<Long, Pair> pairs = new HashMap<>();
    private final Series otherCalls;
    private int interval;

    private static final class Pair {
        final int operation;
        final int caller;
        final long[] buckets = new long[Tally.buckets()];
        long sumNanos;
        long longestNanos;
        long failed;

        long toldCalls = -1;
        long toldAt;
        Series count;
        Series sum;
        Series max;
        Series failures;
        final Series[] histogram = new Series[Tally.buckets()];

        Pair(int operation, int caller) {
            this.operation = operation;
            this.caller = caller;
        }

        void clear() {
            java.util.Arrays.fill(buckets, 0);
            sumNanos = 0;
            longestNanos = 0;
            failed = 0;
        }

        void add(Tally tally, int interval) {
            for (int at = 0; at < buckets.length; at++) {
                buckets[at] += tally.bucket(at);
            }
            sumNanos += tally.sumNanos();
            failed += tally.failed();
            longestNanos = Math.max(longestNanos, tally.longestNanos(interval));
        }

        long calls() {
            long calls = 0;
            for (long inBucket : buckets) {
                calls += inBucket;
            }
            return calls;
        }
    }

    OperationSampler(SeriesMaker maker, Buffers buffers) {
        this.maker = maker;
        this.buffers = buffers;
        this.otherCalls = maker.of("tacho_agent_aggregated_other_total");
    }

    @Override
    public void sample(SampleBatch into) {
        pairs.values().forEach(Pair::clear);
        interval = Tally.nextInterval();
        buffers.forEach(this::add);
        long now = System.nanoTime();
        long others = 0;
        for (Pair pair : pairs.values()) {
            long calls = pair.calls();
            others += pair.caller == other ? calls : 0;
            if (calls != pair.toldCalls || isOld(pair.toldAt, now)) {
                tell(pair, calls, into);
                pair.toldCalls = calls;
                pair.toldAt = now;
            }
        }
        if (!pairs.isEmpty()) {
            into.add(otherCalls, others);
        }
    }

    /** True if an unchanged value must be sent again. */
    static boolean isOld(long toldAt, long now) {
        return now - toldAt > UNCHANGED_NANOS;
    }

    private void add(ThreadBuffer buffer) {
        for (Tally tally : buffer.tallies().all()) {
            long key = (long) tally.operation() << 32 | tally.caller();
            pairs.computeIfAbsent(key, missing -> new Pair(tally.operation(), tally.caller()))
                    .add(tally, interval);
        }
    }

    /** Number of counted calls of each operation, from the start to the last {@link #sample}. */
    Map<Integer, Long> callsByOperation() {
        Map<Integer, Long> calls = new HashMap<>();
        pairs.values().forEach(pair -> calls.merge(pair.operation, pair.calls(), Long::sum));
        return calls;
    }

    private void tell(Pair pair, long calls, SampleBatch into) {
        if (pair.count == null) {
            name(pair);
        }
        into.add(pair.count, calls).add(pair.sum, pair.sumNanos / NANOS);
        into.add(pair.max, pair.longestNanos / NANOS).add(pair.failures, pair.failed);
        long below = 0;
        for (int at = 0; at < pair.buckets.length; at++) {
            below += pair.buckets[at];
            into.add(pair.histogram[at], below);
        }
    }

    private void name(Pair pair) {
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("operation", label(pair.operation));
        labels.put("caller", label(pair.caller));
        pair.count = maker.of(NAME + "_count", labels);
        pair.sum = maker.of(NAME + "_sum", labels);
        pair.max = maker.of(NAME + "_max", labels);
        pair.failures = maker.of("tacho_operation_failed_total", labels);
        for (int at = 0; at < pair.histogram.length; at++) {
            boolean last = at == pair.histogram.length - 1;
            labels.put("le", last ? "+Inf" : seconds(Tally.boundNanos(at)));
            pair.histogram[at] = maker.of(NAME + "_bucket", labels);
        }
    }

    /** Formats nanoseconds as a decimal number of seconds: {@code 0.000000064}. */
    private static String seconds(long nanos) {
        return BigDecimal.valueOf(nanos, 9).stripTrailingZeros().toPlainString();
    }

    static String label(int operation) {
        Operations.Entry entry = Operations.shared().entry(operation);
        return entry == null
                ? NO_CALLER
                : new String(Bytes.utf8(entry.name, LABEL_BYTES_MAX), StandardCharsets.UTF_8);
    }
}
