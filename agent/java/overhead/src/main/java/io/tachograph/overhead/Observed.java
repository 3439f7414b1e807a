package io.tachograph.overhead;

import com.sun.management.OperatingSystemMXBean;

import observed.Monitored;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;

/**
 * The measured process: calls {@link Monitored} and times every call from outside. The first half
 * warms up. Prints one line: {@code RESULT} and the figures as JSON. Before: {@link Overhead}
 * starts it.
 */
public final class Observed {
    private Observed() {}

    /**
     * @param arguments traces, depth, method time in ns, time between two traces in ns
     */
    public static void main(String[] arguments) {
        int traces = Integer.parseInt(arguments[0]);
        int depth = Integer.parseInt(arguments[1]);
        long methodTimeNs = Long.parseLong(arguments[2]);
        long gapNs = Long.parseLong(arguments[3]);
        Monitored monitored = new Monitored();
        long[] timesNs = new long[traces / 2];
        run(monitored, timesNs, depth, methodTimeNs, gapNs);
        Use before = Use.now();
        run(monitored, timesNs, depth, methodTimeNs, gapNs);
        Use after = Use.now();
        System.out.println("RESULT " + json(timesNs, before, after));
    }

    private static void run(
            Monitored monitored, long[] timesNs, int depth, long methodTimeNs, long gapNs) {
        for (int i = 0; i < timesNs.length; i++) {
            long start = System.nanoTime();
            monitored.monitoredMethod(methodTimeNs, depth);
            long end = System.nanoTime();
            timesNs[i] = end - start;
            while (gapNs > 0 && System.nanoTime() - end < gapNs) {
                Thread.onSpinWait();
            }
        }
    }

    private static String json(long[] timesNs, Use before, Use after) {
        double mean = Arrays.stream(timesNs).average().orElse(0);
        Arrays.sort(timesNs);
        int traces = timesNs.length;
        return String.format(
                Locale.ROOT,
                "\"traces\":%d,\"median_us\":%.4f,\"mean_us\":%.4f,\"p95_us\":%.4f,\"p99_us\":%.4f,\"max_us\":%.1f,"
                    + "\"traces_per_s\":%.0f,\"cpu_us_per_trace\":%.4f,"
                    + "\"allocated_bytes_per_trace\":%.1f,\"allocated_bytes_per_trace_all_threads\":%.1f,"
                    + "\"jdk\":\"%s\"",
                traces,
                timesNs[traces / 2] / 1e3,
                mean / 1e3,
                timesNs[traces * 95 / 100] / 1e3,
                timesNs[traces * 99 / 100] / 1e3,
                timesNs[traces - 1] / 1e3,
                traces * 1e9 / (after.wallNs - before.wallNs),
                (after.cpuNs - before.cpuNs) / 1e3 / traces,
                (double) (after.allocatedHere - before.allocatedHere) / traces,
                (double) (after.allocated - before.allocated) / traces,
                System.getProperty("java.version"));
    }

    /** What the process has used so far. */
    private static final class Use {
        final long wallNs;
        final long cpuNs;
        final long allocatedHere;
        final long allocated;

        private Use(long wallNs, long cpuNs, long allocatedHere, long allocated) {
            this.wallNs = wallNs;
            this.cpuNs = cpuNs;
            this.allocatedHere = allocatedHere;
            this.allocated = allocated;
        }

        static Use now() {
            com.sun.management.ThreadMXBean threads =
                    (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
            OperatingSystemMXBean system =
                    (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            long all =
                    Arrays.stream(threads.getThreadAllocatedBytes(threads.getAllThreadIds()))
                            .filter(n -> n > 0)
                            .sum();
            long here = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            return new Use(System.nanoTime(), system.getProcessCpuTime(), here, all);
        }
    }
}
