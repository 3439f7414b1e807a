package app;

import java.lang.management.ManagementFactory;

/** Prints, five times, how many bytes a million recorded calls allocate on their thread. */
final class Allocation {
    private static final int CALLS = 1_000_000;

    private Allocation() {}

    static void run() {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int round = 0; round < 5; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int at = 0; at < CALLS / 10; at++) {
                Work.Request.handle();
            }
            long bytes = threads.getCurrentThreadAllocatedBytes() - before;
            System.out.println("bytes " + bytes);
        }
    }
}
