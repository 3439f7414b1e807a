package io.tachograph.overhead;

import observed.Monitored;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * The measured process: threads that call {@link Monitored} for some seconds. The first part of
 * this time is warm-up. At the end the process prints one line, {@code RESULT} and the figures as
 * JSON. Before: {@code fork.py}. After: {@code figures.py} reads the line.
 */
public final class Observed {
    /** Time to start all threads before the first bin of {@link Recording} begins. */
    private static final long START_NANOS = 20_000_000;

    /** Time for writers to drain their queues, so that no framework loses records at the exit. */
    private static final long DRAIN_MILLIS = 1_500;

    private Observed() {}

    /** @param arguments see {@link Workload} */
    public static void main(String[] arguments) throws InterruptedException {
        Workload workload = Workload.parse(arguments);
        Monitored monitored = new Monitored();
        Use.now(); // loads classes, which would delay the first reading
        System.gc();
        long begin = System.nanoTime() + START_NANOS;
        List<Worker> workers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < workload.threads(); number++) {
            workers.add(new Worker(workload, monitored, begin, number));
            threads.add(new Thread(workers.get(number), "worker-" + number));
        }
        threads.forEach(Thread::start);
        sleepUntil(begin + workload.warmUpMillis() * 1_000_000);
        Use before = Use.now();
        sleepUntil(begin + workload.nanos());
        Use used = Use.now().minus(before);
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("RESULT " + json(workload, workers, used));
        System.out.flush();
        Thread.sleep(DRAIN_MILLIS);
    }

    private static void sleepUntil(long nanos) {
        for (long left = nanos - System.nanoTime();
                left > 0;
                left = nanos - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static String json(Workload workload, List<Worker> workers, Use used) {
        Histogram all = new Histogram();
        workers.forEach(worker -> all.addAll(worker.recording.measured));
        return "{"
                + String.join(
                        ",",
                        pair("millis", workload.millis()),
                        pair("warm_up_millis", workload.warmUpMillis()),
                        pair("first_bin", workload.firstBin()),
                        pair("traces", sum(workers.stream().mapToLong(w -> w.traces))),
                        pair("late", sum(workers.stream().mapToLong(w -> w.late))),
                        pair("dropped", dropped(workers)),
                        pair(
                                "longest_ns",
                                workers.stream()
                                        .mapToLong(worker -> worker.recording.longest)
                                        .max()
                                        .orElse(0)),
                        pair("wall_ns", used.wallNanos()),
                        pair("cpu_ns", used.cpuNanos()),
                        pair("app_cpu_ns", sum(workers.stream().mapToLong(w -> w.cpuNanos))),
                        pair("app_bytes", sum(workers.stream().mapToLong(w -> w.allocatedBytes))),
                        pair("all_bytes", used.allocatedBytes()),
                        pair("collections", used.collections()),
                        pair("pause_ms", used.pauseMillis()),
                        "\"bin_counts\":" + Arrays.toString(binCounts(workers)),
                        "\"bin_sums\":" + Arrays.toString(binSums(workers)),
                        "\"bin_medians\":" + binMedians(workers),
                        "\"histogram\":" + all.json(),
                        "\"java\":\"" + System.getProperty("java.version") + '"',
                        "\"jvm\":\"" + System.getProperty("java.vm.name") + '"')
                + "}";
    }

    private static String pair(String name, long value) {
        return '"' + name + "\":" + value;
    }

    private static long sum(LongStream values) {
        return values.sum();
    }

    private static long dropped(List<Worker> workers) {
        return workers.stream().anyMatch(worker -> worker.dropped < 0)
                ? -1
                : sum(workers.stream().mapToLong(worker -> worker.dropped));
    }

    private static long[] binCounts(List<Worker> workers) {
        long[] counts = new long[Workload.BINS];
        workers.forEach(
                worker ->
                        Arrays.setAll(counts, at -> counts[at] + worker.recording.counts[at]));
        return counts;
    }

    private static long[] binSums(List<Worker> workers) {
        long[] sums = new long[Workload.BINS];
        workers.forEach(
                worker -> Arrays.setAll(sums, at -> sums[at] + worker.recording.sums[at]));
        return sums;
    }

    /**
     * The median of each bin. With several threads, it is the mean of the medians of the threads,
     * weighted by their numbers of traces.
     */
    private static String binMedians(List<Worker> workers) {
        long[] counts = binCounts(workers);
        double[] medians = new double[Workload.BINS];
        for (Worker worker : workers) {
            Recording recording = worker.recording;
            Arrays.setAll(
                    medians,
                    at -> medians[at] + recording.medians[at] * recording.counts[at]);
        }
        Arrays.setAll(medians, at -> counts[at] == 0 ? 0 : medians[at] / counts[at]);
        return Arrays.stream(medians)
                .mapToObj(median -> Long.toString(Math.round(median)))
                .collect(Collectors.joining(",", "[", "]"));
    }
}
