package io.tachograph.overhead;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * What does watching cost? Runs the same recursion under each {@link Setup}, a fresh process each
 * time, in an order that gives all of them the same share of the machine's moods; prints a table
 * and keeps every fork's figures. After: {@link Observed} (the measured process), {@link Sink} (the
 * receiver), {@link Table}.
 */
public final class Overhead {
    private static final String HELP =
            """
usage: java -jar overhead.jar --agent JAR [--kieker JAR] [options]

  --agent JAR      our agent
  --kieker JAR     Kieker's Byte Buddy agent, to be compared with
  --server ADDR    a running tacho serve, host:port
  --java PATH      the JVM that is measured (the one that runs this)
  --forks N        processes of each kind (3)
  --traces N       traces in a process, the first half is not counted (1000000)
  --depth N        calls in a trace (10)
  --method-ns N    time of the innermost call (0)
  --gap-ns N       time between two traces, not counted (0); with 0 no sender can keep up
  --out DIR        where the raw figures go (bench-results)

example: java -jar overhead.jar --agent tachograph-agent.jar --kieker kieker-2.0.2-bytebuddy.jar --forks 5
""";

    private static final long FORK_S_MAX = 600;

    private final Map<String, String> options;

    private Overhead(Map<String, String> options) {
        this.options = options;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0
                || arguments.length % 2 == 1
                || List.of(arguments).contains("--help")) {
            System.out.print(HELP);
            return;
        }
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            options.put(arguments[i], arguments[i + 1]);
        }
        new Overhead(options).run();
    }

    private void run() throws Exception {
        List<Setup> setups = setups();
        Path raw = raw();
        List<Result> results = new ArrayList<>();
        for (int fork = 1; fork <= number("--forks", 3); fork++) {
            for (Setup setup : setups) {
                Result result = measure(setup, fork);
                Files.writeString(
                        raw,
                        result.json() + "\n",
                        StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND);
                results.add(result);
                System.err.printf(
                        Locale.ROOT,
                        "fork %d, %s: median %.3f us, mean %.3f us%n",
                        fork,
                        setup.title,
                        result.figure("median_us"),
                        result.figure("mean_us"));
            }
        }
        System.out.printf(
                "%ndepth %d, method time %d ns, gap %d ns, %d traces (first half warms up), %s, raw"
                    + " figures in %s%n%n%s",
                number("--depth", 10),
                number("--method-ns", 0),
                number("--gap-ns", 0),
                number("--traces", 1_000_000),
                machine(),
                raw,
                Table.of(results));
    }

    private List<Setup> setups() {
        List<Setup> wanted = new ArrayList<>();
        for (Setup setup : Setup.values()) {
            boolean possible =
                    (!setup.isOurs() || options.containsKey("--agent"))
                            && (!setup.isKieker() || options.containsKey("--kieker"))
                            && (setup.receiver != Setup.Receiver.REAL
                                    || options.containsKey("--server"));
            if (possible) {
                wanted.add(setup);
            }
        }
        return wanted;
    }

    private Result measure(Setup setup, int fork) throws IOException, InterruptedException {
        try (Sink sink = sink(setup)) {
            String figures = figures(setup, sink == null ? 1 : sink.port());
            StringBuilder json = new StringBuilder();
            json.append("{\"setup\":\"").append(setup.title).append("\",\"fork\":").append(fork);
            json.append(",\"depth\":").append(number("--depth", 10)).append(',').append(figures);
            if (sink != null) {
                sink.close();
                json.append(
                        String.format(
                                Locale.ROOT,
                                ",\"sink_bytes_per_trace\":%.2f,\"calls_left_out_percent\":%.3f",
                                (double) sink.bytes() / number("--traces", 1_000_000),
                                100.0 * sink.dropped() / calls()));
            }
            return new Result(setup, json.append('}').toString());
        }
    }

    private long calls() {
        return number("--traces", 1_000_000) * number("--depth", 10);
    }

    private static Sink sink(Setup setup) throws IOException {
        switch (setup.receiver) {
            case SILENT:
                return Sink.silent();
            case ACKNOWLEDGING:
                return Sink.acknowledging();
            default:
                return null;
        }
    }

    /** Runs one process. @return what it printed, without the braces */
    private String figures(Setup setup, int port) throws IOException, InterruptedException {
        boolean real = setup.receiver == Setup.Receiver.REAL;
        Path agent =
                setup == Setup.NONE
                        ? null
                        : Path.of(options.get(setup.isKieker() ? "--kieker" : "--agent"));
        List<String> command = new ArrayList<>();
        command.add(
                options.getOrDefault(
                        "--java",
                        Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(setup.jvmOptions(agent, port));
        command.addAll(List.of("-cp", ownJar(), "io.tachograph.overhead.Observed"));
        command.add(Long.toString(number("--traces", 1_000_000)));
        command.add(Long.toString(number("--depth", 10)));
        command.add(Long.toString(number("--method-ns", 0)));
        command.add(Long.toString(number("--gap-ns", 0)));
        Path output = Files.createTempFile("overhead", ".log");
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile());
            builder.environment()
                    .putAll(
                            setup.environment(
                                    real ? options.get("--server") : "127.0.0.1:" + port));
            Process process = builder.start();
            if (!process.waitFor(FORK_S_MAX, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            return Files.readAllLines(output).stream()
                    .filter(line -> line.startsWith("RESULT "))
                    .map(line -> line.substring("RESULT ".length()))
                    .findFirst()
                    .orElseThrow(
                            () ->
                                    new IllegalStateException(
                                            setup.title + " gave no result: " + read(output)));
        } finally {
            Files.deleteIfExists(output);
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static String ownJar() {
        return Path.of(Overhead.class.getProtectionDomain().getCodeSource().getLocation().getPath())
                .toString();
    }

    private Path raw() throws IOException {
        Path folder =
                Files.createDirectories(Path.of(options.getOrDefault("--out", "bench-results")));
        return folder.resolve(
                "probe-" + Instant.now().toString().replaceAll("[:.]", "-") + ".jsonl");
    }

    private static String machine() {
        return Runtime.getRuntime().availableProcessors() + " processors";
    }

    private long number(String name, long otherwise) {
        return options.containsKey(name) ? Long.parseLong(options.get(name)) : otherwise;
    }
}
