package io.tachograph.core.sample;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.SampleBatch;

import org.junit.jupiter.api.Test;

import java.util.Map;

/** The overhead is computed from the number of unrecorded calls between two samples. */
class TraceSamplerTest {
    @Test
    void unrecordedCallsOfTheWholeIntervalAreCounted() {
        Buffers.Options options = new Buffers.Options();
        options.tracesMax = 100;
        Buffers buffers = new Buffers(new Session(1, 2), options);
        TraceSampler sampler = new TraceSampler(new SeriesMaker(Map.of()), buffers);
        int operation = Operations.shared().id(Operations.METHOD, "sampled");
        ThreadBuffer buffer = buffers.current();
        for (int traces : new int[] {0, 40, 0, 300}) {
            for (int at = 0; at < traces; at++) {
                buffer.exit(buffer.enter(operation));
            }
            sampler.sample(new SampleBatch(1));
            // The first trace and 100 further traces are recorded: 40, and later 61 of the 300.
            assertEquals(Math.min(61, traces), traces - sampler.callsUnsampled());
        }
    }
}
