package io.tachograph.overhead;

/**
 * The durations of the traces of one thread. 1,000 bins of equal length cover the time of the
 * workload; each has a count, a sum and a median. The traces after the warm-up are also in a
 * histogram.
 */
final class Recording {
    final long[] counts = new long[Workload.BINS];
    final long[] sums = new long[Workload.BINS];
    final double[] medians = new double[Workload.BINS];
    final Histogram measured = new Histogram();
    long longest;

    private final Histogram bin = new Histogram();
    private final long begin;
    private final long binNanos;
    private final int firstBin;
    private final Runnable atFirstBin;
    private long binEnd;
    private int at;
    private long count;
    private long sum;

    /**
     * @param atFirstBin called on the measured thread, between two traces, at the end of the
     *     warm-up
     */
    Recording(Workload workload, long begin, Runnable atFirstBin) {
        this.begin = begin;
        this.binNanos = workload.binNanos();
        this.firstBin = workload.firstBin();
        this.atFirstBin = atFirstBin;
        this.binEnd = begin + binNanos;
        if (firstBin == 0) {
            atFirstBin.run();
        }
    }

    /**
     * Counts a trace in the bin in which it ends. A trace that ends before all bins is counted in
     * bin 0, and a trace that ends after the last bin in the last bin.
     */
    void add(long start, long end) {
        if (end - binEnd >= 0) {
            move(end);
        }
        long nanos = end - start;
        count++;
        sum += nanos;
        bin.add(nanos);
        if (nanos > longest && at >= firstBin) {
            longest = nanos;
        }
    }

    private void move(long end) {
        closeBin();
        int next = (int) Math.min(Workload.BINS - 1, (end - begin) / binNanos);
        boolean warm = at < firstBin && next >= firstBin;
        at = next;
        binEnd = at == Workload.BINS - 1 ? Long.MAX_VALUE + begin : begin + (at + 1) * binNanos;
        if (warm) {
            atFirstBin.run();
        }
    }

    /** Ends the current bin. Must also be called after the last trace. */
    void closeBin() {
        counts[at] = count;
        sums[at] = sum;
        medians[at] = bin.median(count);
        if (at >= firstBin) {
            measured.addAll(bin);
        }
        bin.clear();
        count = 0;
        sum = 0;
    }
}
