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

class LimitsTest {
    private static final Costs COSTS = new Costs(100, 60, 2);
    private static final long SECOND = 1_000_000_000L;

    /**
     * A window in which operation 1 has the given number of calls per second, operation 2 a tenth,
     * and operation 3 a hundredth. Operation 4 has as many calls as operation 1, but is not a
     * method.
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
        Limits.Verdict verdict =
                limits.judge(window, COSTS, Set.of(moved)::contains, Set.of(moved)::contains);
        String aggregated =
                verdict.aggregated.stream()
                        .map(move -> move.operation + ": " + move.reason)
                        .collect(Collectors.joining(", "));
        String off =
                verdict.off.stream()
                        .map(move -> move.operation + " off: " + move.reason)
                        .collect(Collectors.joining(", "));
        String exhausted = verdict.exhausted.isEmpty() ? "" : "nothing left: " + verdict.exhausted;
        return aggregated + off + exhausted;
    }

    @Test
    void aRateMustBeExceededTwiceInARow() {
        Limits limits = new Limits(1_000_000, 0);
        assertEquals("", judge(limits, window(1_200_000, SECOND, 0)));
        assertEquals("", judge(limits, window(900_000, SECOND, 0)));
        assertEquals("", judge(limits, window(1_000_001, SECOND, 0)));
        assertEquals("1: rate 1.2 M/s over 1 M/s", judge(limits, window(1_200_000, SECOND, 0)));
        assertEquals("", judge(limits, window(1_000_000, SECOND, 0)), "moved by a rate at the limit, not above it");
        assertEquals("", judge(limits, window(20_000_000, SECOND, 0), 1, 2), "moved although it is already aggregated");
    }

    @Test
    void theHottestMethodsAreSwitchedOffUntilTheBudgetIsKept() {
        // 2.11 million calls of 100 ns are 21 % of a second; the sender uses 2 %.
        Limits slight = new Limits(0, 210_000);
        assertEquals("", judge(slight, window(1_000_000, SECOND, SECOND / 50)));
        assertEquals(
                "1 off: overhead 23 % over 21 %",
                judge(slight, window(1_000_000, SECOND, SECOND / 50)));
        Limits strict = new Limits(0, 10_000);
        judge(strict, window(1_000_000, SECOND, 0));
        assertEquals(
                "1 off: overhead 21 % over 1 %, 2 off: overhead 21 % over 1 %, "
                        + "3 off: overhead 21 % over 1 %",
                judge(strict, window(1_000_000, SECOND, 0)));
        assertEquals("", judge(strict, window(1_000_000, SECOND, 0), 1, 2, 3),
                "decided after a single window over the budget");
        assertEquals(
                "nothing left: overhead 21 % over 1 %",
                judge(strict, window(1_000_000, SECOND, 0), 1, 2, 3));
    }

    /** Calls of aggregated methods cost time too. */
    @Test
    void aggregatedMethodsAreSwitchedOffToo() {
        Limits limits = new Limits(0, 10_000);
        String said = "";
        for (int at = 0; at < 2; at++) {
            Window window = new Window(SECOND, SECOND, 0);
            window.add(1, 100_000, 0, true, COSTS); // 10 ms
            window.add(2, 0, 1_000_000, true, COSTS); // 60 ms
            Limits.Verdict verdict = limits.judge(window, COSTS, each -> each == 2, each -> false);
            said =
                    verdict.off.stream()
                            .map(move -> "" + move.operation)
                            .collect(Collectors.joining(" "));
            assertEquals(List.of(), verdict.aggregated);
        }
        assertEquals("2 1", said);
    }

    @Test
    void anIdleProcessMovesNothing() {
        Limits limits = new Limits(0, 1);
        for (int window = 0; window < 4; window++) {
            assertEquals("", judge(limits, window(1_000, SECOND / 51, 0)));
            assertEquals("", judge(limits, window(1_000, 0, 0)), "moved although the processor time is unknown");
        }
        assertTrue(limits.judge(window(0, SECOND, 0), COSTS, each -> false, each -> false).kept);
    }

    @Test
    void withoutLimitsOrCostsNothingIsMoved() {
        Limits none = new Limits(0, 0);
        Limits budget = new Limits(0, 1);
        for (int window = 0; window < 4; window++) {
            assertEquals("", judge(none, window(100_000_000, SECOND, 0)));
            Limits.Verdict verdict =
                    budget.judge(
                            window(1_000_000, SECOND, 0),
                            Costs.UNKNOWN,
                            each -> false,
                            each -> false);
            assertEquals(List.of(), verdict.off);
            assertFalse(verdict.kept);
        }
    }

    @Test
    void unrecordedCallsCountInTheBudget() {
        Window window = new Window(SECOND, SECOND, 0);
        window.add(1, 100_000, 0, true, COSTS);
        window.addUnsampled(10_000_000, COSTS);
        assertEquals(0.03, window.overhead(), 1e-9);
    }

    /**
     * 160,000 recorded calls, and 10 million calls of 2 ns in unrecorded traces. Each recorded call
     * gets 125 ns of the cost of the unrecorded calls. Methods 1 to 3 therefore cost 22.5, 11.25
     * and 2.25 ms instead of 10, 5 and 1 ms. The aggregated method 4 costs 12 ms. The sum is 48 ms.
     */
    @ParameterizedTest
    @CsvSource({"30000, 1", "20000, 1 4", "10000, 1 4 2"})
    void theCostOfUnrecordedTracesIsDividedAmongTheRecordedCalls(long budgetPpm, String off) {
        Limits limits = new Limits(0, budgetPpm);
        String said = "";
        for (int at = 0; at < 2; at++) {
            Window window = new Window(SECOND, SECOND, 0);
            window.add(1, 100_000, 0, true, COSTS);
            window.add(2, 50_000, 0, true, COSTS);
            window.add(3, 10_000, 0, true, COSTS);
            window.add(4, 0, 200_000, true, COSTS);
            window.addUnsampled(10_000_000, COSTS);
            assertEquals(0.048, window.overhead(), 1e-9);
            Limits.Verdict verdict = limits.judge(window, COSTS, each -> each == 4, each -> false);
            said =
                    verdict.off.stream()
                            .map(move -> "" + move.operation)
                            .collect(Collectors.joining(" "));
        }
        assertEquals(off, said);
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
    void ratesAreFormattedWithASuffix(double rate, String text) {
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
    void sharesAreFormattedInPercent(double share, String text) {
        assertEquals(text, Limits.percent(share));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theCalibrationMeasuresEachKindOfCall(boolean isSampling) throws Exception {
        Calibration calibration =
                new Calibration(0, isSampling, AgentLog.to(new PrintStream(System.out), true));
        assertFalse(calibration.costs().areKnown());
        calibration.measure();
        Costs first = calibration.costs();
        calibration.measure();
        Costs costs = calibration.costs();
        assertTrue(costs.recordNanos <= first.recordNanos, "a higher cost has replaced the lower one");
        assertTrue(costs.aggregateNanos <= first.aggregateNanos);
        assertTrue(costs.recordNanos > 1 && costs.recordNanos < 100_000, "" + costs.recordNanos);
        assertTrue(costs.aggregateNanos > 1 && costs.aggregateNanos < 100_000);
        assertEquals(isSampling, costs.unsampledNanos > 0);
        assertTrue(costs.unsampledNanos < costs.recordNanos, "" + costs.unsampledNanos);
    }
}
