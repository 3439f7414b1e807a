package io.tachograph.core.cost;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.TraceEntry;
import io.tachograph.bootstrap.Traces;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.log.AgentLog;

import java.util.Arrays;

/**
 * Limits the rate of recorded traces to {@code traces_max}. Every second it reads how many traces
 * began with each operation, and sets the share of each operation for the next second. If this
 * thread gets no processor time, it gives no new shares, so the limit still holds.
 *
 * <p>If another process has decided to record a trace, the trace counts against the limit, but is
 * always recorded. The rest of the limit is divided among the operations with which traces begin
 * here. Together, these operations always get at least a tenth of the limit and at least one trace
 * per second, even if the total is then above the limit. Otherwise, traces of other processes could
 * exclude all traces that begin here.
 *
 * <p>Before: {@link TraceCounts}. After: {@link Traces}, and {@link Moves}, which reports.
 */
public final class TraceKeeper implements Runnable {
    private static final long INTERVAL_MILLIS = 1_000;
    private static final double NANOS = 1e9;

    /**
     * Factor between the observed rate and the wanted share, so that operations with few traces may
     * grow by this factor without unrecorded traces.
     */
    private static final double HEADROOM = 1.25;

    private static final double OWN_PART_MIN = 0.1;

    /**
     * Number of intervals without an unrecorded trace after which the agent reports that all traces
     * are recorded again.
     */
    private static final int QUIET_MIN = 30;

    private final Traces traces;
    private final TraceCounts counts;
    private final Moves moves;
    private final AgentLog log;

    private long[] begunBefore = new long[0];
    private double[] fractions = new double[0];
    private long unsampledBefore;
    private long followsBefore;
    private boolean unsampledLast;
    private int quiet;

    /** Traces per second. */
    private final double limit;

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
                log.detail("the thread that sets sampling shares was interrupted and ends");
                return;
            } catch (Throwable e) {
                // Out of memory or an internal error. No new shares are given, so no traces are
                // recorded after the current shares are used up.
                log.sayOnce("traces " + e.getClass(), "updating sampling shares failed: " + e);
            }
        }
    }

    /**
     * Ends one interval and begins the next. An interval is never shorter than a second.
     *
     * @param seconds since the last call
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
            // An operation that began no trace and still has a permit needs no other permit.
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
        // An unused share is not carried over, except that shares below one trace per second add up
        // to one trace.
        credit = Math.min(credit, Math.max(1, share));
        int permits = (int) credit;
        fractions[at] = credit - permits;
        entry.give(rate == 0 ? 1 : Math.min(1, candidates(share) / rate), permits - before);
    }

    /**
     * Returns the mean number of traces that the random choice should admit; the probability of the
     * entry is computed from it. The admitted number is Poisson distributed. The mean is about two
     * standard deviations above the share, so that rarely too few traces are admitted. The permits
     * limit the recorded traces to the share.
     */
    private static double candidates(double share) {
        return share + 2 * Math.sqrt(share) + 1;
    }

    /**
     * Reports unrecorded traces after two consecutive intervals with such traces, so that a burst
     * is not reported. Reports that all traces are recorded again after {@link #QUIET_MIN}
     * intervals without unrecorded traces.
     */
    private void tell(double rate) {
        boolean isSampling = counts.unsampled() > unsampledBefore;
        unsampledBefore = counts.unsampled();
        if (isSampling && unsampledLast) {
            String over = Limits.perSecond(rate) + " over " + Limits.perSecond(limit);
            moves.excludeTraces("rate " + over);
        }
        quiet = isSampling ? 0 : quiet + 1;
        unsampledLast = isSampling;
        if (quiet == QUIET_MIN) {
            moves.keepTraces();
        }
    }
}
