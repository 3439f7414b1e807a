package io.tachograph.overhead;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The work of the measured process.
 *
 * @param millis time in which traces are made, warm-up included
 * @param warmUpMillis the part at the start that is not measured
 * @param threads number of concurrent threads
 * @param depth calls per trace
 * @param methodNs processor time of the innermost call
 * @param pace traces per second of all threads together; 0 means unlimited
 */
record Workload(
        long millis, long warmUpMillis, int threads, int depth, long methodNs, double pace) {
    static final int BINS = 1_000;
    private static final List<String> NAMES =
            List.of("millis", "warm-up-millis", "threads", "depth", "method-ns", "pace");

    /**
     * @param arguments {@code name=value}, in any order; the last value of a name counts
     * @throws IllegalArgumentException with the invalid argument
     */
    static Workload parse(String[] arguments) {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            String name = equals < 0 ? argument : argument.substring(0, equals);
            if (equals < 0 || !NAMES.contains(name)) {
                throw new IllegalArgumentException(
                        "unknown argument \"" + argument + "\"; write name=value, names: " + NAMES);
            }
            given.put(name, argument.substring(equals + 1));
        }
        long millis = whole(given, "millis", 10_000, 1);
        long warmUp = whole(given, "warm-up-millis", millis / 2, 0);
        if (warmUp >= millis) {
            throw new IllegalArgumentException(
                    "warm-up-millis=" + warmUp + " is not below millis=" + millis);
        }
        return new Workload(
                millis,
                warmUp,
                (int) whole(given, "threads", 1, 1),
                (int) whole(given, "depth", 10, 1),
                whole(given, "method-ns", 0, 0),
                whole(given, "pace", 0, 0));
    }

    long nanos() {
        return millis * 1_000_000;
    }

    long binNanos() {
        return Math.max(1, nanos() / BINS);
    }

    int firstBin() {
        return (int) (warmUpMillis * BINS / millis);
    }

    /** Interval between two traces of one thread, ns; 0 if the pace is unlimited. */
    double intervalNanos() {
        return pace == 0 ? 0 : threads * 1e9 / pace;
    }

    private static long whole(
            Map<String, String> given, String name, long otherwise, long atLeast) {
        String text = given.get(name);
        if (text == null) {
            return otherwise;
        }
        try {
            long value = Long.parseLong(text);
            if (value >= atLeast && value <= Integer.MAX_VALUE) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new IllegalArgumentException(
                name + "=" + text + " is not a whole number from " + atLeast + " to 2147483647");
    }
}
