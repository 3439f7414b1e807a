package io.tachograph.core.sample;

import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import java.lang.management.ClassLoadingMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.lang.management.MemoryUsage;
import java.lang.management.OperatingSystemMXBean;
import java.lang.management.RuntimeMXBean;
import java.lang.management.ThreadMXBean;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Processor time, memory, garbage collection, threads and classes of the JVM. Most series have the
 * same names as in the Prometheus client for Java.
 */
final class JvmSampler implements Sampler {
    private static final double NANOS = 1e9;
    private static final double MILLIS = 1e3;

    private final MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
    private final RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
    private final OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();

    private final Area heap;
    private final Area nonHeap;
    private final Map<GarbageCollectorMXBean, Series[]> collectors = new LinkedHashMap<>();
    private final Series cpu;
    private final Series cpuLoad;
    private final Series systemLoad;
    private final Series openFiles;
    private final Series processors;
    private final Series threadsNow;
    private final Series threadsDaemon;
    private final Series threadsPeak;
    private final Series threadsStarted;
    private final Series classesLoaded;
    private final Series classesLoadedTotal;
    private final Series classesUnloaded;
    private final Series uptime;
    private final Series startTime;

    JvmSampler(SeriesMaker series) {
        heap = new Area(series, "heap");
        nonHeap = new Area(series, "nonheap");
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collectors.put(
                    collector,
                    new Series[] {
                        series.of("jvm_gc_collection_seconds_count", "gc", collector.getName()),
                        series.of("jvm_gc_collection_seconds_total", "gc", collector.getName())
                    });
        }
        cpu = series.of("process_cpu_seconds_total");
        cpuLoad = series.of("process_cpu_usage_ratio");
        systemLoad = series.of("system_load_average_1m");
        openFiles = series.of("process_open_fds");
        processors = series.of("jvm_processors_available");
        threadsNow = series.of("jvm_threads_current");
        threadsDaemon = series.of("jvm_threads_daemon");
        threadsPeak = series.of("jvm_threads_peak");
        threadsStarted = series.of("jvm_threads_started_total");
        classesLoaded = series.of("jvm_classes_loaded");
        classesLoadedTotal = series.of("jvm_classes_loaded_total");
        classesUnloaded = series.of("jvm_classes_unloaded_total");
        uptime = series.of("process_uptime_seconds");
        startTime = series.of("process_start_time_seconds");
    }

    /** Heap or non-heap memory. */
    private static final class Area {
        private final Series used;
        private final Series committed;
        private final Series max;

        Area(SeriesMaker series, String area) {
            used = series.of("jvm_memory_used_bytes", "area", area);
            committed = series.of("jvm_memory_committed_bytes", "area", area);
            max = series.of("jvm_memory_max_bytes", "area", area);
        }

        void sample(MemoryUsage usage, SampleBatch into) {
            into.add(used, usage.getUsed()).add(committed, usage.getCommitted());
            if (usage.getMax() >= 0) {
                into.add(max, usage.getMax());
            }
        }
    }

    @Override
    public void sample(SampleBatch into) {
        heap.sample(memory.getHeapMemoryUsage(), into);
        nonHeap.sample(memory.getNonHeapMemoryUsage(), into);
        collectors.forEach(
                (collector, series) -> {
                    into.add(series[0], collector.getCollectionCount());
                    into.add(series[1], collector.getCollectionTime() / MILLIS);
                });
        into.add(threadsNow, (long) threads.getThreadCount());
        into.add(threadsDaemon, (long) threads.getDaemonThreadCount());
        into.add(threadsPeak, (long) threads.getPeakThreadCount());
        into.add(threadsStarted, threads.getTotalStartedThreadCount());
        into.add(classesLoaded, (long) classes.getLoadedClassCount());
        into.add(classesLoadedTotal, classes.getTotalLoadedClassCount());
        into.add(classesUnloaded, classes.getUnloadedClassCount());
        into.add(uptime, runtime.getUptime() / MILLIS);
        into.add(startTime, runtime.getStartTime() / MILLIS);
        into.add(processors, (long) system.getAvailableProcessors());
        if (system.getSystemLoadAverage() >= 0) {
            into.add(systemLoad, system.getSystemLoadAverage());
        }
        sampleProcess(into);
    }

    private void sampleProcess(SampleBatch into) {
        if (system instanceof com.sun.management.OperatingSystemMXBean) {
            var process = (com.sun.management.OperatingSystemMXBean) system;
            into.add(cpu, process.getProcessCpuTime() / NANOS);
            double load = process.getProcessCpuLoad();
            if (load >= 0) {
                into.add(cpuLoad, load);
            }
        }
        if (system instanceof com.sun.management.UnixOperatingSystemMXBean) {
            into.add(
                    openFiles,
                    ((com.sun.management.UnixOperatingSystemMXBean) system)
                            .getOpenFileDescriptorCount());
        }
    }
}
