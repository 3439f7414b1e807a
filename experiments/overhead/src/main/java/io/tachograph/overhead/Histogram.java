package io.tachograph.overhead;

import java.util.Arrays;

/**
 * Histogram of durations: exact to the nanosecond below 2,048 ns, and to 1/64 above. Adding a value
 * increments an element of an array that stays in the cache, with almost no effect on the
 * measurement.
 */
final class Histogram {
    private static final int EXACT_BITS = 11;
    private static final int EXACT = 1 << EXACT_BITS;
    private static final int PARTS_BITS = 6;
    private static final int PARTS = 1 << PARTS_BITS;

    private final long[] counts = new long[EXACT + (63 - EXACT_BITS) * PARTS];
    private int lowest = counts.length;
    private int highest = -1;

    void add(long nanos) {
        int at = index(nanos);
        counts[at]++;
        if (at < lowest) {
            lowest = at;
        }
        if (at > highest) {
            highest = at;
        }
    }

    void addAll(Histogram other) {
        for (int at = other.lowest; at <= other.highest; at++) {
            counts[at] += other.counts[at];
        }
        lowest = Math.min(lowest, other.lowest);
        highest = Math.max(highest, other.highest);
    }

    void clear() {
        if (highest >= 0) {
            Arrays.fill(counts, lowest, highest + 1, 0);
        }
        lowest = counts.length;
        highest = -1;
    }

    /** The lower median of the {@code count} added values; 0 if there are none. */
    double median(long count) {
        long left = (count + 1) / 2;
        for (int at = lowest; at <= highest; at++) {
            left -= counts[at];
            if (left <= 0) {
                return value(at);
            }
        }
        return 0;
    }

    /** Pairs of a value (the middle of its range) and its count, as JSON. */
    String json() {
        StringBuilder text = new StringBuilder("[");
        for (int at = lowest; at <= highest; at++) {
            if (counts[at] > 0) {
                text.append(text.length() > 1 ? "," : "").append('[');
                text.append(value(at)).append(',').append(counts[at]).append(']');
            }
        }
        return text.append(']').toString();
    }

    static int index(long nanos) {
        if (nanos < EXACT) {
            return (int) Math.max(0, nanos);
        }
        int power = 63 - Long.numberOfLeadingZeros(nanos);
        int part = (int) (nanos >>> power - PARTS_BITS) & PARTS - 1;
        return EXACT + (power - EXACT_BITS) * PARTS + part;
    }

    static long value(int index) {
        if (index < EXACT) {
            return index;
        }
        int power = EXACT_BITS + (index - EXACT) / PARTS;
        long width = 1L << power - PARTS_BITS;
        return (1L << power) + (index - EXACT) % PARTS * width + width / 2;
    }
}
