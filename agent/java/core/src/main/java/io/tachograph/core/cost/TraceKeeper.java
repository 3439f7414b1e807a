package io.tachograph.core.cost;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.TraceEntry;
import io.tachograph.bootstrap.Traces;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.log.AgentLog;

import java.util.Arrays;

/**
 * Holds the rate of recorded traces under {@code traces_max}: every second it looks at what began,
 * and gives each entry operation its share of the next second. A daemon thread of its own; while it
 * gets no processor nothing is given, so the rate is kept then, too.
 *
 * <p>Traces that another process decided about are followed, so they come first: what they leave of
 * the limit is shared. A tenth of it is shared in any case, or what begins here would vanish.
 *
 * <p>Before: {@link TraceShares}. After: {@link Traces}, {@link Moves}, which tells.
 */
public final class TraceKeeper implements Runnable {
    private static final long INTERVAL_MILLIS = 1_000;
    private static final double NANOS = 1e9;

    /** A share is so much above what was seen: small operations may grow without losing traces. */
    private static final double HEADROOM = 1.25;

    private static final double OWN_PART_MIN = 0.1;

    /** So many intervals without a trace left out, and all are said to be kept again. */
    private static final int QUIET_MIN = 30;

    private final Traces traces;
    private final TraceCounts counts;
    private final Moves moves;
    private final AgentLog log;

    private long[] begunBefore = new long[0];
    private double[] fractions = new double[0];
    private long leftOutBefore;
    private long followsBefore;
    private boolean leftOutLast;
    private int quiet;

    /** Traces a second; lower than the setting while the budget for the overhead says so. */
    private volatile double limit;

    /** Why the limit is lower, else empty. */
    private volatile String lowered = "";

    public TraceKeeper(Buffers buffers, Moves moves, AgentLog log) {
        this.traces = buffers.traces();
        this.counts = new TraceCounts(buffers);
        this.moves = moves;
        this.log = log;
        this.limit = traces.perSecondMax();
    }

    public void start() {
        Thread thread = new Thread(null, this, "tachograph-traces", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
    }

    @Override
    public void run() {
        long before = System.nanoTime();
        while (true) {
            try {
                Thread.sleep(INTERVAL_MILLIS);
                long now = System.nanoTime();
                step((now - before) / NANOS);
                before = now;
            } catch (InterruptedException e) {
                log.detail("the keeper of traces was interrupted and ends");
                return;
            } catch (Throwable e) {
                // No memory, or a fault of ours: the shares stay used up, nothing more is kept.
                log.sayOnce("traces " + e.getClass(), "sharing out the traces failed: " + e);
            }
        }
    }

    /**
     * Ends one interval and begins the next, which is never shorter than a second.
     *
     * @param seconds since the last time
     */
    void step(double seconds) {
        counts.read();
        TraceEntry[] entries = traces.entries();
        int size = counts.size();
        begunBefore = Arrays.copyOf(begunBefore, size);
        fractions = Arrays.copyOf(fractions, size);
        double[] rates = new double[size];
        double[] wanted = new double[size];
        for (int at = 0; at < size; at++) {
            rates[at] = (counts.begun(at) - begunBefore[at]) / seconds;
            begunBefore[at] = counts.begun(at);
            // One that is seldom seen has kept its permit: no need to hold another one for it.
            boolean isSatisfied = rates[at] == 0 && entries[at].permits() > 0;
            wanted[at] = isSatisfied ? 0 : Math.max(1, HEADROOM * rates[at]);
        }
        double followed = (counts.followsKept() - followsBefore) / seconds;
        followsBefore = counts.followsKept();
        double budget =
                Math.max(limit - followed, Math.min(limit, Math.max(1, limit * OWN_PART_MIN)));
        double[] shares = TraceShares.of(budget, wanted);
        double left = budget;
        for (int at = 0; at < size; at++) {
            give(entries[at], at, shares[at], rates[at]);
            left -= shares[at];
        }
        traces.spare((int) Math.min(Integer.MAX_VALUE, left + 1e-6));
        tell(Arrays.stream(rates).sum() + followed);
    }

    private void give(TraceEntry entry, int at, double share, double rate) {
        int before = entry.permits();
        double credit = Math.max(0, before) + fractions[at] + share;
        // What was not used is not carried over, but for one trace of a share below one a second.
        credit = Math.min(credit, Math.max(1, share));
        int permits = (int) credit;
        fractions[at] = credit - permits;
        entry.give(rate == 0 ? 1 : Math.min(1, candidates(share) / rate), permits - before);
    }

    /**
     * How many traces are to have a chance, so that seldom fewer are kept than the share: their
     * number is Poisson's, and this is two deviations above.
     */
    private static double candidates(double share) {
        return share + 2 * Math.sqrt(share) + 1;
    }

    /** Two intervals in a row, so that a burst is no news. */
    private void tell(double rate) {
        boolean leavesOut = counts.leftOut() > leftOutBefore;
        leftOutBefore = counts.leftOut();
        if (leavesOut && leftOutLast) {
            String over = Limits.perSecond(rate) + " over " + Limits.perSecond(limit);
            moves.leaveTracesOut(lowered.isEmpty() ? "rate " + over : lowered);
        }
        quiet = leavesOut ? 0 : quiet + 1;
        leftOutLast = leavesOut;
        if (quiet == QUIET_MIN) {
            moves.keepTraces();
        }
    }

    // ---- the budget for the overhead ----

    /**
     * Fewer traces than in the time that was judged.
     *
     * @param factor below 1
     * @param keptPerSecond traces in that time
     * @param reason why
     * @return false if there are as few as can be
     */
    public boolean lower(double factor, double keptPerSecond, String reason) {
        double before = limit;
        limit = Math.max(1, Math.min(before, keptPerSecond) * factor);
        lowered = reason;
        return before > 1;
    }

    /** More again, up to the setting. */
    public void raise(double factor) {
        if (!lowered.isEmpty()) {
            limit = Math.min(traces.perSecondMax(), limit * factor);
            lowered = limit < traces.perSecondMax() ? lowered : "";
        }
    }

    /** Traces a second that are kept at most, now. */
    public double limit() {
        return limit;
    }
}
