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
 * Which operations are to be aggregated instead of recorded: those with more calls a second than a
 * limit, and the hottest ones while the agent's share of the processor time is over its budget.
 * Where traces are left out anyway, fewer of them are kept instead: an aggregated call costs its
 * two clock reads in every trace, also in those left out. Decides only; a limit counts as exceeded
 * when it is so in two windows in a row, so that the start of a program moves nothing.
 *
 * <p>Before: {@code io.tachograph.core.sample.OverheadSampler}. After: {@code
 * io.tachograph.core.instrument.Moves}.
 */
public final class Limits {
    /** A process that is as good as idle has no overhead worth a change. */
    private static final double BUSY_MIN = 0.02;

    /** What is moved is chosen so that the budget is kept with something to spare. */
    private static final double SPARE = 0.9;

    /**
     * Traces that the budget took away come back bit by bit while so much of it is used at most.
     */
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
     * @param callsPerSecondMax of one operation; 0 for no limit
     * @param overheadMaxPpm share of the processor time, millionths; 0 for no limit
     * @param leavesTracesOut not all traces are kept, so the budget may say how many are
     */
    public Limits(long callsPerSecondMax, long overheadMaxPpm, boolean leavesTracesOut) {
        this.callsPerSecondMax = callsPerSecondMax;
        this.overheadMax = overheadMaxPpm / PPM;
        this.leavesTracesOut = leavesTracesOut;
    }

    /** What is to be done. */
    public static final class Verdict {
        /** Operations to aggregate from now on, and why. */
        public final List<Move> moves = new ArrayList<>();

        /** The budget is exceeded, and nothing is left to move: why; else empty. */
        public String exhausted = "";

        /** The budget is kept. */
        public boolean kept;

        /** By what to multiply the traces that are kept: below 1 fewer, above 1 more again. */
        public double traces = 1;

        /** Why fewer; else empty. */
        public String fewer = "";
    }

    /** One operation. */
    public static final class Move {
        public final int operation;
        public final String reason;

        Move(int operation, String reason) {
            this.operation = operation;
            this.reason = reason;
        }
    }

    /**
     * @param isMoved operations that are aggregated already
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

    /** Is the budget exceeded, for the second time in a row? */
    private boolean isExceededAgain(Window window, Verdict verdict) {
        boolean busy = window.processNanos > BUSY_MIN * window.elapsedNanos;
        boolean tooMuch = busy && window.overhead() > overheadMax;
        boolean again = tooMuch && tooMuchBefore;
        tooMuchBefore = tooMuch && !again; // what is moved now shows two windows later
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
        // A call that is not recorded saves the sender its part, too.
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

    /** Two digits or more, no zeros behind the point. */
    private static String digits(double value) {
        BigDecimal exact = BigDecimal.valueOf(value);
        BigDecimal round =
                value < 100
                        ? exact.round(new MathContext(2))
                        : exact.setScale(0, RoundingMode.HALF_UP);
        return round.stripTrailingZeros().toPlainString();
    }
}
