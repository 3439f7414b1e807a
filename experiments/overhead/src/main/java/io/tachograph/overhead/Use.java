package io.tachograph.overhead;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/**
 * Resources used by the process so far.
 *
 * @param cpuNanos processor time of all threads, including those of the JVM and of agents
 * @param allocatedBytes bytes allocated by all live Java threads
 */
record Use(long wallNanos, long cpuNanos, long allocatedBytes, long collections, long pauseMillis) {

    static Use now() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long[] allocated = threads.getThreadAllocatedBytes(threads.getAllThreadIds());
        long collections = 0;
        long pauseMillis = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += collector.getCollectionCount();
            pauseMillis += collector.getCollectionTime();
        }
        return new Use(
                System.nanoTime(),
                system.getProcessCpuTime(),
                Arrays.stream(allocated).filter(bytes -> bytes > 0).sum(),
                collections,
                pauseMillis);
    }

    Use minus(Use before) {
        return new Use(
                wallNanos - before.wallNanos,
                cpuNanos - before.cpuNanos,
                allocatedBytes - before.allocatedBytes,
                collections - before.collections,
                pauseMillis - before.pauseMillis);
    }
}
