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
import java.util.function.ToDoubleFunction;

/**
 * Decides which methods are no longer recorded. A method with more calls per second than a limit is
 * aggregated. If the agent's share of the processor time is over its budget, the methods whose
 * calls cost most are switched off. Aggregating these methods would not help, because a counted
 * call costs nearly as much as a recorded call (docs/adr/0011-one-budget.md). The time between two
 * readings of the counts is a {@link Window}. A limit must be exceeded in two consecutive windows,
 * so that a short peak, such as the start of a program, has no effect.
 *
 * <p>Before: {@code io.tachograph.core.sample.OverheadSampler}. After: {@code
 * io.tachograph.core.instrument.Moves}.
 */
public final class Limits {
    /**
     * Below this load (share of one processor) the process is nearly idle, and its overhead is
     * ignored.
     */
    private static final double BUSY_MIN = 0.02;

    /** Methods are switched off until the overhead is this fraction of the budget. */
    private static final double SPARE = 0.9;

    private static final double PPM = 1e6;
    private static final double NANOS = 1e9;

    private final long callsPerSecondMax;
    private final double overheadMax;
    private Set<Integer> tooManyBefore = new HashSet<>();
    private boolean tooMuchBefore;

    /**
     * @param callsPerSecondMax limit for one operation; 0 for no limit
     * @param overheadMaxPpm limit for the share of the processor time, in millionths; 0 for no
     *     limit
     */
    public Limits(long callsPerSecondMax, long overheadMaxPpm) {
        this.callsPerSecondMax = callsPerSecondMax;
        this.overheadMax = overheadMaxPpm / PPM;
    }

    public static final class Verdict {
        /** Operations to aggregate from now on, with the reason. */
        public final List<Move> aggregated = new ArrayList<>();

        /** Operations to switch off from now on, with the reason. */
        public final List<Move> off = new ArrayList<>();

        /** The reason, if the budget is exceeded and no method can be switched off; else empty. */
        public String exhausted = "";

        /**
         * True if there is a budget, the cost of a call is known, and either the overhead is within
         * the budget or the process is nearly idle.
         */
        public boolean kept;
    }

    public static final class Move {
        public final int operation;
        public final String reason;

        Move(int operation, String reason) {
            this.operation = operation;
            this.reason = reason;
        }
    }

    /**
     * @param isMoved tells whether an operation is already aggregated or off
     * @param isOff tells whether an operation is already off
     */
    public Verdict judge(Window window, Costs costs, IntPredicate isMoved, IntPredicate isOff) {
        Verdict verdict = new Verdict();
        judgeRates(window, isMoved, verdict);
        if (overheadMax > 0 && costs.areKnown() && isExceededAgain(window, verdict)) {
            judgeOverhead(window, costs, isOff, verdict);
        }
        return verdict;
    }

    private boolean isExceededAgain(Window window, Verdict verdict) {
        boolean busy = window.processNanos > BUSY_MIN * window.elapsedNanos;
        boolean tooMuch = busy && window.overhead() > overheadMax;
        boolean again = tooMuch && tooMuchBefore;
        tooMuchBefore = tooMuch && !again; // after a move, the two windows begin again
        verdict.kept = !tooMuch;
        return again;
    }

    private void judgeRates(Window window, IntPredicate isMoved, Verdict verdict) {
        Set<Integer> tooMany = new HashSet<>();
        for (Window.Calls calls : window.calls) {
            boolean isCandidate = calls.movable && !isMoved.test(calls.operation);
            double rate = calls.recorded * NANOS / window.elapsedNanos;
            if (callsPerSecondMax > 0 && isCandidate && rate > callsPerSecondMax) {
                tooMany.add(calls.operation);
                if (tooManyBefore.contains(calls.operation)) {
                    String reason =
                            "rate " + perSecond(rate) + " over " + perSecond(callsPerSecondMax);
                    verdict.aggregated.add(new Move(calls.operation, reason));
                }
            }
        }
        tooManyBefore = tooMany;
    }

    private void judgeOverhead(
            Window window, Costs costs, IntPredicate isOff, Verdict verdict) {
        double excess = (window.overhead() - SPARE * overheadMax) * window.processNanos;
        // Each recorded call gets an equal part of the sender's time.
        double record =
                costs.recordNanos + (double) window.senderNanos / Math.max(1, window.recorded());
        // The calls of unrecorded traces are counted together. Their cost is divided among the
        // recorded calls.
        double unsampled = window.unsampledNanos / Math.max(1, window.recorded());
        ToDoubleFunction<Window.Calls> saved =
                calls ->
                        calls.recorded * (record + unsampled)
                                + calls.aggregated * costs.aggregateNanos;
        List<Window.Calls> candidates = new ArrayList<>(window.calls);
        candidates.removeIf(calls -> !calls.movable || isOff.test(calls.operation));
        candidates.sort(Comparator.comparingDouble(saved).reversed());
        String reason = "overhead " + percent(window.overhead()) + " over " + percent(overheadMax);
        for (Window.Calls calls : candidates) {
            if (excess > 0) {
                verdict.aggregated.removeIf(move -> move.operation == calls.operation);
                verdict.off.add(new Move(calls.operation, reason));
                excess -= saved.applyAsDouble(calls);
            }
        }
        if (verdict.off.isEmpty()) {
            verdict.exhausted = reason;
        }
    }

    /** Formats a rate: {@code 950/s}, {@code 1.2 M/s}. */
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

    /** Formats a share: {@code 1.4 %}. */
    static String percent(double share) {
        return digits(share * 100) + " %";
    }

    /** Rounds to two significant digits, or to a whole number from 100 on. */
    private static String digits(double value) {
        BigDecimal exact = BigDecimal.valueOf(value);
        BigDecimal round =
                value < 100
                        ? exact.round(new MathContext(2))
                        : exact.setScale(0, RoundingMode.HALF_UP);
        return round.stripTrailingZeros().toPlainString();
    }
}
