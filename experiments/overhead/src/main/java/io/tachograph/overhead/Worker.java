package io.tachograph.overhead;

import com.sun.management.ThreadMXBean;

import observed.Monitored;

import java.lang.management.ManagementFactory;

/**
 * A thread that calls {@link Monitored} and times each call from outside. Before: {@link Observed}.
 * After: {@link Recording}.
 */
final class Worker implements Runnable {
    private static final ThreadMXBean THREADS =
            (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** A paced trace counts as late if it begins later than planned by more than this. */
    private static final long LATE_NANOS = 1_000_000;

    private final Workload workload;
    private final Monitored monitored;
    private final long begin;
    private final double firstNanos;

    Recording recording;
    long traces;
    long late;

    /** Processor time of this thread after the warm-up, ns. */
    long cpuNanos;

    long allocatedBytes;

    /** Calls dropped on this thread; -1 if unknown. */
    long dropped;

    /**
     * @param begin time of {@link System#nanoTime} at which the first bin begins
     * @param number number of this thread, counted from 0
     */
    Worker(Workload workload, Monitored monitored, long begin, int number) {
        this.workload = workload;
        this.monitored = monitored;
        this.begin = begin;
        this.firstNanos = workload.intervalNanos() * number / workload.threads();
    }

    @Override
    public void run() {
        recording = new Recording(workload, begin, this::beginToCount);
        long finish = begin + workload.nanos();
        if (workload.pace() > 0) {
            runPaced(finish);
        } else {
            runClosed(finish);
        }
        cpuNanos = CpuClock.now() - cpuNanos;
        allocatedBytes = THREADS.getCurrentThreadAllocatedBytes() - allocatedBytes;
        recording.closeBin();
        dropped = Dropped.ofThisThread();
    }

    private void beginToCount() {
        cpuNanos = CpuClock.now();
        allocatedBytes = THREADS.getCurrentThreadAllocatedBytes();
    }

    private void runClosed(long finish) {
        long methodNs = workload.methodNs();
        int depth = workload.depth();
        long end;
        do {
            long start = System.nanoTime();
            monitored.monitoredMethod(methodNs, depth);
            end = System.nanoTime();
            recording.add(start, end);
            traces++;
        } while (end - finish < 0);
    }

    /** Spins until the next trace is due, so that the thread is running then. */
    private void runPaced(long finish) {
        long methodNs = workload.methodNs();
        int depth = workload.depth();
        double interval = workload.intervalNanos();
        long end;
        do {
            long due = begin + (long) (firstNanos + traces * interval);
            long start = System.nanoTime();
            while (start - due < 0) {
                Thread.onSpinWait();
                start = System.nanoTime();
            }
            if (start - due > LATE_NANOS) {
                late++;
            }
            monitored.monitoredMethod(methodNs, depth);
            end = System.nanoTime();
            recording.add(start, end);
            traces++;
        } while (end - finish < 0);
    }
}
