package io.tachograph.core.cost;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.log.AgentLog;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Measures what a call costs on this machine, three times in the first minute and on a thread of
 * its own: the code that the advice runs, on buffers that nobody reads. In the program a call costs
 * more when its caches are elsewhere, so this is the least that a call costs.
 */
public final class Calibration implements Runnable {
    /**
     * Waits before each measurement: the first after what a program does at its start. The least
     * counts: on a busy machine the compiler may not have come to the code at the first time.
     */
    private static final long[] DELAYS_MILLIS = {3_000, 10_000, 30_000};

    private static final int CALLS = 500;
    private static final int ROUNDS = 240;

    /** A pause after so many rounds: the compiler works on the loop meanwhile, nobody waits. */
    private static final int ROUNDS_TOGETHER = 4;

    private static final long PAUSE_MILLIS = 4;

    /** Processor time of each of the ways to watch a call. */
    private static final long NANOS_MAX = 40_000_000;

    /** Calls of a trace that is left out: the decision is made once for all of them. */
    private static final int CALLS_OF_TRACE = 10;

    /**
     * Processor time of this thread, as what it is set beside; on a busy machine most of the time
     * on the clock is that of other threads.
     */
    private static final LongSupplier NANOS = clock();

    private final Buffers buffers;

    /** Their traces are left out but for the first ones; null where none ever is. */
    private final Buffers leavingOut;

    private final int operation = Operations.shared().id(Operations.METHOD, Operations.OTHER);
    private final long firstMillis;
    private final AgentLog log;
    private volatile Costs costs = Costs.UNKNOWN;

    /**
     * @param firstMillisMax the first measurement is no later than so long after the start
     * @param leavesOut some traces are left out: what that costs is measured, too
     */
    public Calibration(long firstMillisMax, boolean leavesOut, AgentLog log) {
        this.buffers = new Buffers(Session.shared(), options(0));
        this.leavingOut = leavesOut ? new Buffers(Session.shared(), options(1)) : null;
        this.firstMillis = Math.min(DELAYS_MILLIS[0], firstMillisMax);
        this.log = log;
    }

    private static Buffers.Options options(long tracesMax) {
        Buffers.Options options = new Buffers.Options();
        options.words = 4 * CALLS;
        options.threadsMax = 1;
        options.virtualMax = 1;
        options.tracesMax = tracesMax;
        return options;
    }

    public void start() {
        Thread thread = new Thread(null, this, "tachograph-calibration", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
    }

    /** {@link Costs#UNKNOWN} until it is done. */
    public Costs costs() {
        return costs;
    }

    @Override
    public void run() {
        try {
            Thread.sleep(firstMillis);
            measure();
            for (int at = 1; at < DELAYS_MILLIS.length; at++) {
                Thread.sleep(DELAYS_MILLIS[at]);
                measure();
            }
        } catch (InterruptedException e) {
            log.detail("the calibration was interrupted");
        } catch (Throwable e) {
            log.say("the cost of a call cannot be measured, no overhead is told: " + e);
        }
    }

    void measure() throws InterruptedException {
        double record = nanos(buffers, this::record);
        double aggregate = nanos(buffers, this::aggregate);
        double leftOut = leavingOut == null ? 0 : nanos(leavingOut, this::leaveOut);
        Costs least = costs.least(new Costs(record, aggregate, leftOut));
        costs = least;
        log.detail(
                String.format(
                        "a recorded call costs %.0f ns here, an aggregated one %.0f ns, one that is"
                                + " left out %.1f ns",
                        least.recordNanos, least.aggregateNanos, least.leftOutNanos));
    }

    /**
     * The lower quartile of the last half of the rounds: by then the loop is compiled, and what
     * other threads did to its caches does not count.
     */
    private static double nanos(Buffers buffers, LongSupplier round) throws InterruptedException {
        long[] rounds = new long[ROUNDS];
        long spent = 0;
        int count = 0;
        while (count < ROUNDS && (spent < NANOS_MAX || count < ROUNDS_TOGETHER)) {
            ThreadBuffer buffer = buffers.current();
            rounds[count] = round.getAsLong();
            spent += rounds[count++];
            buffer.free(buffer.published());
            if (count % ROUNDS_TOGETHER == 0) {
                Thread.sleep(PAUSE_MILLIS);
            }
        }
        long[] last = Arrays.copyOfRange(rounds, count / 2, count);
        Arrays.sort(last);
        return (double) last[last.length / 4] / CALLS;
    }

    private static LongSupplier clock() {
        try {
            return ProcessorTime.clock();
        } catch (LinkageError e) {
            return System::nanoTime; // a program that leaves out the module java.management
        }
    }

    /** A class of its own: its module may be missing. */
    private static final class ProcessorTime {
        static LongSupplier clock() {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            boolean tells =
                    threads.isCurrentThreadCpuTimeSupported() && threads.isThreadCpuTimeEnabled();
            return tells ? threads::getCurrentThreadCpuTime : System::nanoTime;
        }
    }

    private long record() {
        long begin = NANOS.getAsLong();
        for (int at = 0; at < CALLS; at++) {
            ThreadBuffer buffer = buffers.current();
            buffer.exit(buffer.enter(operation));
        }
        return NANOS.getAsLong() - begin;
    }

    private long leaveOut() {
        long begin = NANOS.getAsLong();
        for (int at = 0; at < CALLS; at += CALLS_OF_TRACE) {
            int outermost = leavingOut.current().enter(operation);
            for (int nested = 1; nested < CALLS_OF_TRACE; nested++) {
                ThreadBuffer buffer = leavingOut.current();
                buffer.exit(buffer.enter(operation));
            }
            leavingOut.current().exit(outermost);
        }
        return NANOS.getAsLong() - begin;
    }

    private long aggregate() {
        long begin = NANOS.getAsLong();
        for (int at = 0; at < CALLS; at++) {
            ThreadBuffer buffer = buffers.current();
            buffer.exitCounted(buffer.enterCounted(operation), false);
        }
        return NANOS.getAsLong() - begin;
    }
}
