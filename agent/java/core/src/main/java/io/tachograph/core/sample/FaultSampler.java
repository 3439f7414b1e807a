package io.tachograph.core.sample;

import io.tachograph.bootstrap.AdviceFaults;
import io.tachograph.core.instrument.Unwatched;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Counts of exceptions in advice and of classes that could not be instrumented. A series appears
 * only when its count is above 0.
 */
final class FaultSampler implements Sampler {
    private final SeriesMaker maker;
    private final Unwatched unwatched;
    private final Series byConstructor;
    private final Series others;
    private final Series[] faults = new Series[AdviceFaults.PLACES_MAX];

    FaultSampler(SeriesMaker maker, Unwatched unwatched) {
        this.maker = maker;
        this.unwatched = unwatched;
        String name = "tacho_agent_unwatched_classes_total";
        this.byConstructor = maker.of(name, "reason", "constructor");
        this.others = maker.of(name, "reason", "other");
    }

    @Override
    public void sample(SampleBatch into) {
        if (unwatched.byConstructor() > 0) {
            into.add(byConstructor, unwatched.byConstructor());
        }
        if (unwatched.others() > 0) {
            into.add(others, unwatched.others());
        }
        int end = AdviceFaults.size();
        for (int at = 0; at < end; at++) {
            long count = AdviceFaults.count(at);
            if (count > 0) {
                into.add(series(at), count);
            }
        }
    }

    private Series series(int place) {
        if (faults[place] == null) {
            Map<String, String> labels = new LinkedHashMap<>();
            labels.put("probe", AdviceFaults.place(place).probe);
            labels.put("advice", AdviceFaults.place(place).advice);
            faults[place] = maker.of("tacho_agent_probe_faults_total", labels);
        }
        return faults[place];
    }
}
