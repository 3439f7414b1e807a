package io.tachograph.core.cost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.core.log.AgentLog;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.PrintStream;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Which operations are moved, when, and with which reason. */
class LimitsTest {
    private static final Costs COSTS = new Costs(100, 60, 2);
    private static final long SECOND = 1_000_000_000L;

    /**
     * Calls per second: operation 1 has the given number, 2 a tenth, 3 a hundredth; 4 as many as 1,
     * but it cannot be moved.
     */
    private static Window window(long calls, long processNanos, long senderNanos) {
        Window window = new Window(SECOND, processNanos, senderNanos);
        window.add(1, calls, 0, true, COSTS);
        window.add(2, calls / 10, 0, true, COSTS);
        window.add(3, calls / 100, 0, true, COSTS);
        window.add(4, calls, 0, false, COSTS);
        return window;
    }

    private static String judge(Limits limits, Window window, Integer... moved) {
        Limits.Verdict verdict = limits.judge(window, COSTS, Set.of(moved)::contains);
        String moves =
                verdict.moves.stream()
                        .map(move -> move.operation + ": " + move.reason)
                        .collect(Collectors.joining(", "));
        return moves + (verdict.exhausted.isEmpty() ? "" : "nothing left: " + verdict.exhausted);
    }

    @Test
    void aRateMustBeExceededTwiceInARow() {
        Limits limits = new Limits(1_000_000, 0, false);
        assertEquals("", judge(limits, window(1_200_000, SECOND, 0)));
        assertEquals("", judge(limits, window(900_000, SECOND, 0)));
        assertEquals("", judge(limits, window(1_000_001, SECOND, 0)));
        assertEquals("1: rate 1.2 M/s over 1 M/s", judge(limits, window(1_200_000, SECOND, 0)));
        assertEquals("", judge(limits, window(1_000_000, SECOND, 0)), "at the limit");
        assertEquals("", judge(limits, window(20_000_000, SECOND, 0), 1, 2), "moved already");
    }

    @Test
    void theHottestOperationsAreMovedUntilTheBudgetIsMet() {
        // 2.11 million calls of 100 ns: 21 % of a second, and 0.0211 s of the sender.
        Limits slight = new Limits(0, 210_000, false);
        assertEquals("", judge(slight, window(1_000_000, SECOND, SECOND / 50)));
        assertEquals(
                "1: overhead 23 % over 21 %",
                judge(slight, window(1_000_000, SECOND, SECOND / 50)));
        Limits strict = new Limits(0, 10_000, false);
        judge(strict, window(1_000_000, SECOND, 0));
        assertEquals(
                "1: overhead 21 % over 1 %, 2: overhead 21 % over 1 %, 3: overhead 21 % over 1 %",
                judge(strict, window(1_000_000, SECOND, 0)));
        assertEquals("", judge(strict, window(1_000_000, SECOND, 0), 1, 2, 3), "not at once");
        assertEquals(
                "nothing left: overhead 21 % over 1 %",
                judge(strict, window(1_000_000, SECOND, 0), 1, 2, 3));
    }

    @Test
    void anIdleProcessMovesNothing() {
        Limits limits = new Limits(0, 1, false);
        for (int window = 0; window < 4; window++) {
            assertEquals("", judge(limits, window(1_000, SECOND / 51, 0)));
            assertEquals("", judge(limits, window(1_000, 0, 0)), "processor time is unknown");
        }
        assertTrue(limits.judge(window(0, SECOND, 0), COSTS, each -> false).kept);
    }

    @Test
    void withoutLimitsOrCostsNothingIsMoved() {
        Limits none = new Limits(0, 0, false);
        Limits budget = new Limits(0, 1, false);
        for (int window = 0; window < 4; window++) {
            assertEquals("", judge(none, window(100_000_000, SECOND, 0)));
            Limits.Verdict verdict =
                    budget.judge(window(1_000_000, SECOND, 0), Costs.UNKNOWN, each -> false);
            assertEquals(List.of(), verdict.moves);
            assertFalse(verdict.kept);
        }
    }

    /** Allowed share of the processor time, and the resulting factor for traces. */
    @ParameterizedTest
    @CsvSource({
        // 2.11 million calls of 100 ns, 1 million unrecorded ones of 2 ns: 21.3 % of a second.
        "211000, 0.8905, overhead 21 % over 21 %",
        "110000, 0.460, overhead 21 % over 11 %",
        "10000, 0.033, overhead 21 % over 1 %",
        "2000, 0, overhead 21 % over 0.2 %",
        "250000, 1, ''",
        "310000, 1.25, ''",
    })
    void fewerTracesAreRecordedIfTheSettingAllows(long ppm, double traces, String reason) {
        Limits limits = new Limits(0, ppm, true);
        Limits.Verdict verdict = null;
        for (int at = 0; at < 2; at++) {
            Window window = window(1_000_000, SECOND, 0);
            window.addLeftOut(1_000_000, COSTS);
            verdict = limits.judge(window, COSTS, each -> false);
            assertTrue(at == 1 || verdict.traces >= 1, "twice in a row");
        }
        assertEquals(traces, verdict.traces, 0.001);
        assertEquals(reason, verdict.fewer);
        assertEquals(reason.isEmpty(), verdict.kept);
        assertEquals(List.of(), verdict.moves, "aggregated calls cost more than unrecorded ones");
    }

    @ParameterizedTest
    @CsvSource({
        "0.5, 0.5/s",
        "12, 12/s",
        "999.4, 999/s",
        "999.6, 1 k/s",
        "1200000, 1.2 M/s",
        "999600000, 1 G/s",
        "12000000000000, 12000 G/s"
    })
    void ratesReadWell(double rate, String text) {
        assertEquals(text, Limits.perSecond(rate));
    }

    @ParameterizedTest
    @CsvSource({
        "0.014, 1.4 %",
        "0.01, 1 %",
        "1.234, 123 %",
        "0.000001, 0.0001 %",
        "0.0005, 0.05 %"
    })
    void sharesReadWell(double share, String text) {
        assertEquals(text, Limits.percent(share));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theCalibrationMeasuresEachWay(boolean leavesOut) throws Exception {
        Calibration calibration =
                new Calibration(0, leavesOut, AgentLog.to(new PrintStream(System.out), true));
        assertFalse(calibration.costs().areKnown());
        calibration.measure();
        Costs first = calibration.costs();
        calibration.measure();
        Costs costs = calibration.costs();
        assertTrue(costs.recordNanos <= first.recordNanos, "the lowest cost counts");
        assertTrue(costs.aggregateNanos <= first.aggregateNanos);
        assertTrue(costs.recordNanos > 1 && costs.recordNanos < 100_000, "" + costs.recordNanos);
        assertTrue(costs.aggregateNanos > 1 && costs.aggregateNanos < 100_000);
        assertEquals(leavesOut, costs.leftOutNanos > 0);
        assertTrue(costs.leftOutNanos < costs.recordNanos, "" + costs.leftOutNanos);
    }
}
