package io.tachograph.core.sample;

import io.tachograph.bootstrap.Losses;
import io.tachograph.core.send.Totals;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

/**
 * Counts of the agent itself: records sent and dropped, bytes, connections. It has no state that
 * changes, because two threads call it: the thread of the samplers, and the sender before the
 * program ends.
 */
final class AgentSampler implements Sampler {
    private final Totals totals;
    private final Series callsSent;
    private final Series callsDropped;
    private final Series samplesSent;
    private final Series samplesDropped;
    private final Series entriesSent;
    private final Series entriesDropped;
    private final Series entriesFailed;
    private final Series attributesDropped;
    private final Series parentsDropped;
    private final Series rejected;
    private final Series bytesSent;
    private final Series bytesQueued;
    private final Series connects;

    AgentSampler(SeriesMaker series, Totals totals) {
        this.totals = totals;
        callsSent = series.of("tacho_agent_sent_total", "kind", "execution");
        samplesSent = series.of("tacho_agent_sent_total", "kind", "sample");
        callsDropped = series.of("tacho_agent_dropped_total", "kind", "execution");
        samplesDropped = series.of("tacho_agent_dropped_total", "kind", "sample");
        entriesSent = series.of("tacho_agent_sent_total", "kind", "entry");
        entriesDropped = series.of("tacho_agent_dropped_total", "kind", "entry");
        entriesFailed = series.of("tacho_agent_entries_failed_total");
        attributesDropped = series.of("tacho_agent_attributes_dropped_total");
        parentsDropped = series.of("tacho_agent_parents_dropped_total");
        rejected = series.of("tacho_agent_rejected_total");
        bytesSent = series.of("tacho_agent_sent_bytes_total");
        bytesQueued = series.of("tacho_agent_queued_bytes");
        connects = series.of("tacho_agent_connects_total");
    }

    @Override
    public void sample(SampleBatch into) {
        into.add(callsSent, totals.callsSent()).add(callsDropped, totals.callsDropped());
        into.add(samplesSent, totals.samplesSent()).add(samplesDropped, totals.samplesDropped());
        into.add(entriesSent, totals.entriesSent()).add(entriesDropped, totals.entriesDropped());
        into.add(entriesFailed, totals.entriesFailed());
        into.add(parentsDropped, Losses.parents());
        into.add(attributesDropped, totals.attributesDropped() + Losses.attributes())
                .add(rejected, totals.recordsRejected());
        into.add(bytesSent, totals.bytesSent()).add(bytesQueued, totals.bytesQueued());
        into.add(connects, totals.connects());
    }
}
