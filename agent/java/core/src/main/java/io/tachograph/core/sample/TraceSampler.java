package io.tachograph.core.sample;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.TraceEntry;
import io.tachograph.core.cost.TraceCounts;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import java.util.ArrayList;
import java.util.List;

/**
 * Counts of recorded and unrecorded traces, by the operation with which they begin.
 *
 * <p>Before: {@code io.tachograph.bootstrap.TraceGate}. After: {@code
 * io.tachograph.core.send.Sender}.
 */
final class TraceSampler implements Sampler {
    private final SeriesMaker maker;
    private final Buffers buffers;
    private final double perSecondMax;
    private final TraceCounts counts;
    private final List<Told> entries = new ArrayList<>();
    private final Series callsUnsampled;
    private final Series ratio;
    private final Series limit;
    private long keptBefore;
    private long unsampledBefore;
    private long callsBefore;

    private static final class Told {
        final Series kept;
        final Series unsampled;
        long traces = -1;
        long at;

        Told(SeriesMaker maker, String operation) {
            kept = maker.of("tacho_agent_traces_kept_total", "operation", operation);
            unsampled = maker.of("tacho_agent_traces_unsampled_total", "operation", operation);
        }
    }

    TraceSampler(SeriesMaker maker, Buffers buffers) {
        this.maker = maker;
        this.buffers = buffers;
        this.perSecondMax = buffers.traces().perSecondMax();
        this.counts = new TraceCounts(buffers);
        this.callsUnsampled = maker.of("tacho_agent_calls_unsampled_total");
        this.ratio = maker.of("tacho_agent_sampling_ratio");
        this.limit = maker.of("tacho_agent_traces_per_second_max");
    }

    @Override
    public void sample(SampleBatch into) {
        counts.read();
        TraceEntry[] all = buffers.traces().entries();
        long now = System.nanoTime();
        long kept = 0;
        long unsampled = 0;
        for (int at = 0; at < counts.size(); at++) {
            if (at == entries.size()) {
                entries.add(new Told(maker, OperationSampler.label(all[at].operation())));
            }
            tell(entries.get(at), counts.allKept(at), counts.allUnsampled(at), now, into);
            kept += counts.allKept(at);
            unsampled += counts.allUnsampled(at);
        }
        long made = kept + unsampled - keptBefore - unsampledBefore;
        if (made > 0) {
            into.add(ratio, (double) (kept - keptBefore) / made);
        }
        into.add(callsUnsampled, counts.callsUnsampled()).add(limit, perSecondMax);
        keptBefore = kept;
        unsampledBefore = unsampled;
    }

    private static void tell(Told told, long kept, long unsampled, long now, SampleBatch into) {
        long traces = kept + unsampled;
        boolean isNews = traces != told.traces || OperationSampler.isOld(told.at, now);
        if (traces > 0 && isNews) {
            into.add(told.kept, kept).add(told.unsampled, unsampled);
            told.traces = traces;
            told.at = now;
        }
    }

    /** Number of calls in unrecorded traces since the previous call of this method. */
    long callsUnsampled() {
        long calls = counts.callsUnsampled() - callsBefore;
        callsBefore = counts.callsUnsampled();
        return calls;
    }
}
