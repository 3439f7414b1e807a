package io.tachograph.core.cost;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.bootstrap.TraceGate;

/**
 * The counts of traces since the start, summed over all threads ({@link TraceGate}), by the index
 * of the operation with which the traces begin.
 */
public final class TraceCounts {
    private final Buffers buffers;
    private long[] kept = new long[0];
    private long[] leftOut = new long[0];
    private long[] followsKept = new long[0];
    private long[] followsLeftOut = new long[0];
    private long callsLeftOut;

    public TraceCounts(Buffers buffers) {
        this.buffers = buffers;
    }

    /** Must always be called by the same thread. */
    public void read() {
        int entries = buffers.traces().entries().length;
        kept = new long[entries];
        leftOut = new long[entries];
        followsKept = new long[entries];
        followsLeftOut = new long[entries];
        callsLeftOut = 0;
        buffers.forEach(this::add);
    }

    private void add(ThreadBuffer buffer) {
        TraceGate gate = buffer.gate();
        callsLeftOut += gate.callsLeftOut();
        for (int at = 0; at < kept.length; at++) {
            kept[at] += gate.kept(at);
            leftOut[at] += gate.leftOut(at);
            followsKept[at] += gate.followsKept(at);
            followsLeftOut[at] += gate.followsLeftOut(at);
        }
    }

    public int size() {
        return kept.length;
    }

    /** All recorded traces, whether they began in this process or in another process. */
    public long allKept(int index) {
        return kept[index] + followsKept[index];
    }

    /** All unrecorded traces, whether they began in this process or in another process. */
    public long allLeftOut(int index) {
        return leftOut[index] + followsLeftOut[index];
    }

    /** All traces that began in this process. */
    long begun(int index) {
        return kept[index] + leftOut[index];
    }

    long kept() {
        return sum(kept);
    }

    long leftOut() {
        return sum(leftOut);
    }

    long followsKept() {
        return sum(followsKept);
    }

    public long callsLeftOut() {
        return callsLeftOut;
    }

    private static long sum(long[] counts) {
        long sum = 0;
        for (long count : counts) {
            sum += count;
        }
        return sum;
    }
}
