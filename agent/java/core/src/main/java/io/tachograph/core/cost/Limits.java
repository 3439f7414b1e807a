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
 * Decides only; a limit counts as exceeded when it is so in two windows in a row, so that the start
 * of a program moves nothing.
 *
 * <p>Before: {@code io.tachograph.core.sample.OverheadSampler}. After: {@code
 * io.tachograph.core.instrument.Moves}.
 */
public final class Limits {
    /** A process that is as good as idle has no overhead worth a change. */
    private static final double BUSY_MIN = 0.02;

    /** What is moved is chosen so that the budget is kept with something to spare. */
    private static final double SPARE = 0.9;

    private static final double PPM = 1e6;
    private static final double NANOS = 1e9;

    private final long callsPerSecondMax;
    private final double overheadMax;
    private Set<Integer> tooManyBefore = new HashSet<>();
    private boolean tooMuchBefore;

    /**
     * @param callsPerSecondMax of one operation; 0 for no limit
     * @param overheadMaxPpm share of the processor time, millionths; 0 for no limit
     */
    public Limits(long callsPerSecondMax, long overheadMaxPpm) {
        this.callsPerSecondMax = callsPerSecondMax;
        this.overheadMax = overheadMaxPpm / PPM;
    }

    /** What is to be done. */
    public static final class Verdict {
        /** Operations to aggregate from now on, and why. */
        public final List<Move> moves = new ArrayList<>();

        /** The budget is exceeded, and nothing is left to move: why; else empty. */
        public String exhausted = "";

        /** The budget is kept. */
        public boolean kept;
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
            judgeOverhead(window, costs, movable, verdict);
        }
        return verdict;
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
        boolean busy = window.processNanos > BUSY_MIN * window.elapsedNanos;
        boolean tooMuch = busy && window.overhead() > overheadMax;
        boolean again = tooMuch && tooMuchBefore;
        tooMuchBefore = tooMuch && !again; // what is moved now shows two windows later
        verdict.kept = !tooMuch;
        if (!again) {
            return;
        }
        String reason = "overhead " + percent(window.overhead()) + " over " + percent(overheadMax);
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
