package io.tachograph.core.cost;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;

/**
 * Selects the operations to aggregate instead of record: those with more calls per second than a
 * limit, and the hottest ones while the agent's share of the processor time exceeds its budget. If
 * some traces are unrecorded anyway, fewer traces are recorded instead: an aggregated call costs
 * its two clock reads in every trace, recorded or not. Decides only; a limit counts as exceeded
 * after two consecutive windows, so that the start of a program moves nothing.
 *
 * <p>Before: {@code io.tachograph.core.sample.OverheadSampler}. After: {@code
 * io.tachograph.core.instrument.Moves}.
 */
public final class Limits {
    /** Below this load the overhead is ignored: the process is nearly idle. */
    private static final double BUSY_MIN = 0.02;

    /** Target as a part of the budget, so that there is some reserve after a move. */
    private static final double SPARE = 0.9;

    /** Share of the budget up to which traces removed by it are recorded again, step by step. */
    private static final double RELAXED = 0.7;

    private static final double TRACES_RISE = 1.25;

    private static final double PPM = 1e6;
    private static final double NANOS = 1e9;

    private final long callsPerSecondMax;
    private final double overheadMax;
    private final boolean leavesTracesOut;
    private Set<Integer> tooManyBefore = new HashSet<>();
    private boolean tooMuchBefore;

    /**
     * @param callsPerSecondMax limit for one operation; 0 for none
     * @param overheadMaxPpm limit on the share of processor time, millionths; 0 for none
     * @param leavesTracesOut true if some traces are not recorded, so that the budget may lower
     *     their number
     */
    public Limits(long callsPerSecondMax, long overheadMaxPpm, boolean leavesTracesOut) {
        this.callsPerSecondMax = callsPerSecondMax;
        this.overheadMax = overheadMaxPpm / PPM;
        this.leavesTracesOut = leavesTracesOut;
    }

    /** The decisions for one window. */
    public static final class Verdict {
        /** Operations to aggregate from now on, with the reason. */
        public final List<Move> moves = new ArrayList<>();

        /** Reason, if the budget is exceeded and no operation is left to move; else empty. */
        public String exhausted = "";

        /** True if the agent is within its budget. */
        public boolean kept;

        /** Factor for the number of recorded traces: below 1 fewer, above 1 more. */
        public double traces = 1;

        /** Reason for fewer traces; else empty. */
        public String fewer = "";
    }

    /** An operation to aggregate. */
    public static final class Move {
        public final int operation;
        public final String reason;

        Move(int operation, String reason) {
            this.operation = operation;
            this.reason = reason;
        }
    }

    /**
     * @param isMoved true for operations that are aggregated already
     */
    public Verdict judge(Window window, Costs costs, IntPredicate isMoved) {
        Verdict verdict = new Verdict();
        List<Window.Calls> movable = new ArrayList<>();
        for (Window.Calls calls : window.calls) {
            if (calls.movable && calls.recorded > 0 && !isMoved.test(calls.operation)) {
                movable.add(calls);
            }
        }
        judgeRates(window, movable, verdict);
        if (overheadMax > 0 && costs.areKnown()) {
            boolean isExceeded = isExceededAgain(window, verdict);
            if (leavesTracesOut) {
                judgeTraces(window, isExceeded, verdict);
            } else if (isExceeded) {
                judgeOverhead(window, costs, movable, verdict);
            }
        }
        return verdict;
    }

    /** True if the budget is exceeded in the second consecutive window. */
    private boolean isExceededAgain(Window window, Verdict verdict) {
        boolean busy = window.processNanos > BUSY_MIN * window.elapsedNanos;
        boolean tooMuch = busy && window.overhead() > overheadMax;
        boolean again = tooMuch && tooMuchBefore;
        tooMuchBefore = tooMuch && !again; // the effect of a move shows two windows later
        verdict.kept = !tooMuch;
        return again;
    }

    private void judgeTraces(Window window, boolean isExceeded, Verdict verdict) {
        double used = window.overhead();
        double others = window.overheadWithoutTraces();
        if (isExceeded) {
            double room = SPARE * overheadMax - others;
            verdict.traces = room > 0 ? room / (used - others) : 0;
            verdict.fewer = overBudget(window);
        } else if (used < RELAXED * overheadMax) {
            verdict.traces = TRACES_RISE;
        }
    }

    private String overBudget(Window window) {
        return "overhead " + percent(window.overhead()) + " over " + percent(overheadMax);
    }

    private void judgeRates(Window window, List<Window.Calls> movable, Verdict verdict) {
        Set<Integer> tooMany = new HashSet<>();
        for (Window.Calls calls : movable) {
            double rate = calls.recorded * NANOS / window.elapsedNanos;
            if (callsPerSecondMax > 0 && rate > callsPerSecondMax) {
                tooMany.add(calls.operation);
                if (tooManyBefore.contains(calls.operation)) {
                    String reason =
                            "rate " + perSecond(rate) + " over " + perSecond(callsPerSecondMax);
                    verdict.moves.add(new Move(calls.operation, reason));
                }
            }
        }
        tooManyBefore = tooMany;
    }

    private void judgeOverhead(
            Window window, Costs costs, List<Window.Calls> movable, Verdict verdict) {
        String reason = overBudget(window);
        double excess = (window.overhead() - SPARE * overheadMax) * window.processNanos;
        // A call that is not recorded also saves time of the sender.
        double saved =
                Math.max(0, costs.recordNanos - costs.aggregateNanos)
                        + (double) window.senderNanos / Math.max(1, window.recorded());
        movable.removeIf(
                calls -> verdict.moves.stream().anyMatch(m -> m.operation == calls.operation));
        movable.sort(Comparator.comparingLong((Window.Calls calls) -> calls.recorded).reversed());
        for (Window.Calls calls : movable) {
            if (excess > 0 && saved > 0) {
                verdict.moves.add(new Move(calls.operation, reason));
                excess -= saved * calls.recorded;
            }
        }
        if (verdict.moves.isEmpty()) {
            verdict.exhausted = reason;
        }
    }

    /** {@code 950/s}, {@code 1.2 M/s}. */
    static String perSecond(double rate) {
        String[] units = {"", " k", " M", " G"};
        int unit = 0;
        double scaled = rate;
        while (scaled >= 999.5 && unit < units.length - 1) {
            scaled /= 1_000;
            unit++;
        }
        return digits(scaled) + units[unit] + "/s";
    }

    /** {@code 1.4 %}. */
    static String percent(double share) {
        return digits(share * 100) + " %";
    }

    /** At least two digits, no trailing zeros after the point. */
    private static String digits(double value) {
        BigDecimal exact = BigDecimal.valueOf(value);
        BigDecimal round =
                value < 100
                        ? exact.round(new MathContext(2))
                        : exact.setScale(0, RoundingMode.HALF_UP);
        return round.stripTrailingZeros().toPlainString();
    }
}
