package io.tachograph.core.sample;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.core.cost.Calibration;
import io.tachograph.core.cost.Limits;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.instrument.Unwatched;
import io.tachograph.core.send.Sender;
import io.tachograph.core.wire.SampleBatch;

import java.util.Map;
import java.util.function.Consumer;

/**
 * Samples that the sender takes on its own thread, so that they are not lost at the end of the
 * program: the overhead, internal errors, and counts of aggregated operations and unrecorded
 * traces.
 */
public final class AgentReport implements Consumer<SampleBatch> {
    private final OperationSampler operations;
    private final TraceSampler traces;
    private final OverheadSampler overhead;
    private final FaultSampler faults;

    public AgentReport(
            Map<String, String> labels,
            Buffers buffers,
            Sender sender,
            Calibration calibration,
            Limits limits,
            Moves moves,
            Unwatched unwatched) {
        SeriesMaker maker = new SeriesMaker(labels);
        this.operations = new OperationSampler(maker, buffers);
        this.traces = buffers.traces() == null ? null : new TraceSampler(maker, buffers);
        this.overhead =
                new OverheadSampler(maker, sender, operations, traces, calibration, limits, moves);
        this.faults = new FaultSampler(maker, unwatched);
    }

    @Override
    public void accept(SampleBatch into) {
        operations.sample(into);
        if (traces != null) {
            traces.sample(into);
        }
        overhead.sample(into);
        faults.sample(into);
    }
}
