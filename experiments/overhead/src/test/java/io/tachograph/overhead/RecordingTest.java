package io.tachograph.overhead;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;

class RecordingTest {

    @Test
    void tracesAreInTheBinInWhichTheyEnd() {
        AtomicInteger warm = new AtomicInteger();
        long begin = Long.MAX_VALUE - 700_000_000; // the clock may wrap
        Recording recording =
                new Recording(
                        Workload.parse(new String[] {"millis=1000"}), begin, warm::incrementAndGet);
        for (long[] trace :
                new long[][] {{10, 900}, {910, 950}, {960, 2_100}, {499_000, 500_100}, {600_000, 1_700_000}}) {
            recording.add(begin + 1_000 * trace[0], begin + 1_000 * trace[1]);
        }
        recording.closeBin();
        assertEquals(2, recording.counts[0]);
        assertEquals(930_000, recording.sums[0]);
        assertEquals(Histogram.value(Histogram.index(40_000)), recording.medians[0]);
        assertEquals(1, recording.counts[2]);
        assertEquals(1, recording.counts[500]);
        assertEquals(1, recording.counts[999]);
        assertEquals(5, LongStream.of(recording.counts).sum());
        assertEquals(1_100_000_000, recording.longest);
        assertEquals(1, warm.get());
        assertEquals(String.format(
                        "[[%d,1],[%d,1]]",
                        Histogram.value(Histogram.index(1_100_000)),
                        Histogram.value(Histogram.index(1_100_000_000))), recording.measured.json());
    }

    @Test
    void histogramIsExactBelowTwoMicrosecondsAndToOnePartIn64Above() {
        for (long nanos = 0; nanos < 2_048; nanos++) {
            assertEquals(nanos, Histogram.value(Histogram.index(nanos)));
        }
        for (long nanos = 2_048; nanos > 0; nanos += nanos / 7) {
            double error = Math.abs(Histogram.value(Histogram.index(nanos)) - nanos) / (double) nanos;
            assertTrue(error <= 1.0 / 64, nanos + ": " + error);
        }
        assertEquals(0, Histogram.index(-5));
        Histogram.value(Histogram.index(Long.MAX_VALUE));
    }

    @Test
    void medianIsTheLowerMiddleDuration() {
        Histogram histogram = new Histogram();
        assertEquals(0, histogram.median(0));
        for (long nanos : new long[] {5, 1, 9, 7}) {
            histogram.add(nanos);
        }
        assertEquals(5, histogram.median(4));
        histogram.clear();
        histogram.add(3);
        assertEquals(3, histogram.median(1));
    }

    @Test
    void errorsNameTheInvalidArgument() {
        String[][] wrong = {
            {"depth", "unknown argument \"depth\""},
            {"width=3", "unknown argument \"width=3\""},
            {"depth=0", "depth=0 is not a whole number from 1"},
            {"pace=-1", "pace=-1 is not a whole number from 0"},
            {"millis=x", "millis=x is not a whole number"},
        };
        for (String[] each : wrong) {
            Exception said =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> Workload.parse(new String[] {each[0]}));
            assertTrue(said.getMessage().startsWith(each[1]), said.getMessage());
        }
        assertThrows(
                IllegalArgumentException.class,
                () -> Workload.parse(new String[] {"millis=5", "warm-up-millis=5"}));
    }

    @Test
    void theGivenProcessorTimeIsUsed() {
        long before = CpuClock.now();
        CpuClock.spend(2_000_000);
        assertTrue(CpuClock.now() - before >= 2_000_000);
    }
}
