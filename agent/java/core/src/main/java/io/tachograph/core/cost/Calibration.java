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
 * Measures the cost of a call on this machine, three times in the first minute, on its own thread.
 * It calls the methods that advice calls, on buffers that are not sent. The result is a lower
 * bound: in the program a call costs more when its data is not in the cache.
 */
public final class Calibration implements Runnable {
    /**
     * Delay before each measurement. The lowest result is used, because on a busy machine the code
     * may not be compiled yet at the first measurement.
     */
    private static final long[] DELAYS_MILLIS = {3_000, 10_000, 30_000};

    private static final int CALLS = 500;
    private static final int ROUNDS = 240;

    /** Number of rounds between two pauses. The JIT compiler can compile the loop in a pause. */
    private static final int ROUNDS_TOGETHER = 4;

    private static final long PAUSE_MILLIS = 4;

    /** Limit on the processor time for each kind of call in one measurement, ns. */
    private static final long NANOS_MAX = 40_000_000;

    /** Number of calls in each unrecorded trace. The gate decides once for all of them. */
    private static final int CALLS_OF_TRACE = 10;

    /**
     * Reads the processor time of the calling thread, or the wall time if the JVM does not measure
     * processor time. On a busy machine, most of the wall time belongs to other threads.
     */
    private static final LongSupplier NANOS = clock();

    private final Buffers buffers;

    /** Buffers whose gate rejects all but the first traces; null if all traces are recorded. */
    private final Buffers sampling;

    private final int operation = Operations.shared().id(Operations.METHOD, Operations.OTHER);
    private final long firstMillis;
    private final AgentLog log;
    private volatile Costs costs = Costs.UNKNOWN;

    /**
     * @param firstMillisMax upper bound of the first delay
     * @param isSampling true if {@code traces_max} limits the recorded traces; the cost of a call in
     *     an unrecorded trace is then measured too
     */
    public Calibration(long firstMillisMax, boolean isSampling, AgentLog log) {
        this.buffers = new Buffers(Session.shared(), options(0));
        this.sampling = isSampling ? new Buffers(Session.shared(), options(1)) : null;
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

    /** The lowest results so far; {@link Costs#UNKNOWN} before the first measurement. */
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
            log.say("cannot measure the cost of a call, overhead unknown: " + e);
        }
    }

    void measure() throws InterruptedException {
        double record = nanos(buffers, this::record);
        double aggregate = nanos(buffers, this::aggregate);
        double unsampled = sampling == null ? 0 : nanos(sampling, this::unsampled);
        Costs least = costs.least(new Costs(record, aggregate, unsampled));
        costs = least;
        log.detail(
                String.format(
                        "cost of a call here: recorded %.0f ns, aggregated %.0f ns, not"
                                + " recorded %.1f ns",
                        least.recordNanos, least.aggregateNanos, least.unsampledNanos));
    }

    /**
     * Returns the cost of a call, ns: the lower quartile of the second half of the rounds. In that
     * half the loop is usually compiled. The lower quartile excludes the effect of other threads on
     * the caches.
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
            return System::nanoTime; // the program lacks the module java.management
        }
    }

    /** A separate class, because the module of its types may be missing. */
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

    private long unsampled() {
        long begin = NANOS.getAsLong();
        for (int at = 0; at < CALLS; at += CALLS_OF_TRACE) {
            int outermost = sampling.current().enter(operation);
            for (int nested = 1; nested < CALLS_OF_TRACE; nested++) {
                ThreadBuffer buffer = sampling.current();
                buffer.exit(buffer.enter(operation));
            }
            sampling.current().exit(outermost);
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
