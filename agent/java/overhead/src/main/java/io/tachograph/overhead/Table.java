package io.tachograph.overhead;

import java.util.List;
import java.util.Locale;

/**
 * Results of many forks in, a Markdown table out: the median of the forks, with the lowest and the
 * highest.
 */
final class Table {
    private static final List<String> COLUMNS =
            List.of(
                    "setup",
                    "forks",
                    "median us (min..max)",
                    "mean us (min..max)",
                    "p99 us",
                    "traces/s",
                    "CPU us/trace",
                    "allocated B/trace (app, all)",
                    "sink B/trace",
                    "calls left out %");

    private Table() {}

    static String of(List<Result> results) {
        StringBuilder text = new StringBuilder(1_000);
        text.append("| ").append(String.join(" | ", COLUMNS)).append(" |\n");
        text.append("|---".repeat(COLUMNS.size())).append("|\n");
        for (Setup setup : Setup.values()) {
            List<Result> forks =
                    results.stream().filter(result -> result.setup() == setup).toList();
            if (!forks.isEmpty()) {
                text.append(
                        String.format(
                                Locale.ROOT,
                                "| %s | %d | %s | %s | %.2f | %.0f | %.2f | %.0f, %.0f | %s | %s"
                                    + " |%n",
                                setup.title,
                                forks.size(),
                                spread(forks, "median_us"),
                                spread(forks, "mean_us"),
                                median(forks, "p99_us"),
                                median(forks, "traces_per_s"),
                                median(forks, "cpu_us_per_trace"),
                                median(forks, "allocated_bytes_per_trace"),
                                median(forks, "allocated_bytes_per_trace_all_threads"),
                                received(forks, "sink_bytes_per_trace"),
                                received(forks, "calls_left_out_percent")));
            }
        }
        return text.toString();
    }

    private static String spread(List<Result> forks, String name) {
        double[] sorted = sorted(forks, name);
        return String.format(
                Locale.ROOT,
                "%.3f (%.3f..%.3f)",
                median(forks, name),
                sorted[0],
                sorted[sorted.length - 1]);
    }

    /** What the receiver saw; without a receiver there is nothing to say. */
    private static String received(List<Result> forks, String name) {
        double value = median(forks, name);
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.1f", value);
    }

    private static double median(List<Result> forks, String name) {
        double[] sorted = sorted(forks, name);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private static double[] sorted(List<Result> forks, String name) {
        return forks.stream().mapToDouble(fork -> fork.figure(name)).sorted().toArray();
    }
}
