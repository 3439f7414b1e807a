package app;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Prints the approximate cost of one recorded call, in ns of wall time and of processor time: the
 * average over traces of ten nested calls. The exact benchmark is experiments/overhead.
 */
final class Price {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Price() {}

    static void run(int traces) {
        for (int round = 0; round < 5; round++) {
            long begin = System.nanoTime();
            long cpu = THREADS.getCurrentThreadCpuTime();
            for (int at = 0; at < traces; at++) {
                Deep.down(10);
            }
            cpu = THREADS.getCurrentThreadCpuTime() - cpu;
            System.out.println(
                    "ns_per_call "
                            + (System.nanoTime() - begin) / 10.0 / traces
                            + " cpu "
                            + cpu / 10.0 / traces);
        }
    }

    static final class Deep {
        static int down(int depth) {
            return depth <= 1 ? Work.sink : down(depth - 1);
        }
    }
}
