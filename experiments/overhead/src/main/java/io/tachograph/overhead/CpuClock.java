package io.tachograph.overhead;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Processor time of the current thread. Each reading is a system call that takes about 0.2 to 0.5
 * us. {@link #spend} reads at least twice, so a method time below about 1 us is not possible.
 */
public final class CpuClock {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private CpuClock() {}

    /** In ns. */
    public static long now() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /**
     * Uses at least the given processor time. Time in which the thread is preempted does not count.
     *
     * @return the thread's processor time at the end
     */
    public static long spend(long nanos) {
        long end = now() + nanos;
        long now;
        do {
            now = now();
        } while (now < end);
        return now;
    }
}
