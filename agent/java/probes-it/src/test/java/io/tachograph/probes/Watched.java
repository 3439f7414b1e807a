package io.tachograph.probes;

import io.tachograph.testing.Call;
import io.tachograph.testing.Decoder;
import io.tachograph.testing.Jdks;
import io.tachograph.testing.Sample;
import io.tachograph.testing.WireServer;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** A separate JVM that runs a program with the agent, and the server to which the agent sends. */
final class Watched implements AutoCloseable {
    private static final long START_S_MAX = 120;
    private static final long END_S_MAX = 300;
    private static final long ARRIVAL_S_MAX = 60;
    private static final String AGENT = "-javaagent:" + System.getProperty("agent.jar");
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private final WireServer server = new WireServer();
    private final Path output = Files.createTempFile("watched", ".log");
    private final Process process;

    /**
     * @param jdk version of the JDK
     * @param main the main class. The agent records the methods of all classes in the package
     *     {@code shop}, except {@code main} and constructors.
     */
    Watched(int jdk, Class<?> main, String... arguments) throws IOException {
        this(jdk, Map.of(), main, arguments);
    }

    /** @param settings further variables; they override the variables that every program gets */
    Watched(int jdk, Map<String, String> settings, Class<?> main, String... arguments)
            throws IOException {
        this(jdk, settings, main, List.of(AGENT), launch(main, arguments));
    }

    private Watched(
            int jdk,
            Map<String, String> settings,
            Class<?> main,
            List<String> agents,
            List<String> launch)
            throws IOException {
        server.copy = new ByteArrayOutputStream();
        List<String> command = new ArrayList<>(Jdks.command(jdk));
        command.add("-Xmx256m");
        command.addAll(agents);
        command.addAll(launch);
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile());
        builder.environment().put("TACHO_SERVER", server.address());
        builder.environment().put("TACHO_SERVICE", main.getSimpleName());
        builder.environment().put("TACHO_INCLUDE", "shop.*");
        builder.environment().put("TACHO_EXCLUDE", "shop.*.main,shop.*.<init>");
        builder.environment().put("TACHO_REQUEST_ID_HEADERS", "X-Request-Id, X-Correlation-ID");
        builder.environment().put("TACHO_SAMPLERS", "false");
        builder.environment().putAll(settings);
        process = builder.start();
    }

    private static List<String> launch(Class<?> main, String... arguments) {
        List<String> launch = new ArrayList<>(List.of("-cp", classPath(), main.getName()));
        launch.addAll(List.of(arguments));
        return launch;
    }

    /**
     * Starts a program that is packed into one jar with its libraries.
     *
     * @param main the class whose simple name becomes the name of the service
     */
    static Watched jar(int jdk, Class<?> main, Path jar) throws IOException {
        return new Watched(jdk, Map.of(), main, List.of(AGENT), List.of("-jar", jar.toString()));
    }

    /**
     * Starts a program with a second agent.
     *
     * @param options options of the JVM, including the other {@code -javaagent}
     * @param first true if the other agent comes first
     */
    static Watched beside(int jdk, Class<?> main, List<String> options, boolean first)
            throws IOException {
        List<String> agents = new ArrayList<>(options);
        agents.add(first ? agents.size() : 0, AGENT);
        return new Watched(jdk, Map.of(), main, agents, launch(main));
    }

    /** The jars on the class path whose file names begin with the pattern. */
    static List<Path> jars(String pattern) {
        return Arrays.stream(
                        System.getProperty("java.class.path")
                                .split(System.getProperty("path.separator")))
                .filter(entry -> entry.matches(".*/" + pattern + "[^/]*\\.jar"))
                .map(Path::of)
                .collect(Collectors.toList());
    }

    /** The class path of the program: classes and libraries of this module, without any agent. */
    private static String classPath() {
        return Arrays.stream(
                        System.getProperty("java.class.path")
                                .split(System.getProperty("path.separator")))
                .filter(entry -> !entry.matches(".*/opentelemetry-javaagent-[^/]*"))
                .filter(entry -> !entry.matches(".*/tachograph-[a-z]+-[0-9][^/]*\\.jar"))
                .filter(
                        entry ->
                                !entry.matches(
                                        ".*/(bootstrap|core|probes|agent|testing)/target/classes/?"))
                .collect(Collectors.joining(System.getProperty("path.separator")));
    }

    /** Waits until the program has printed its port. */
    int port() throws IOException, InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_S_MAX);
        while (System.nanoTime() < until && process.isAlive()) {
            for (String line : Files.readAllLines(output)) {
                if (line.startsWith("PORT ")) {
                    return Integer.parseInt(line.substring("PORT ".length()));
                }
            }
            Thread.sleep(20);
        }
        throw new IllegalStateException("the program does not listen: " + output());
    }

    /**
     * @param headers names and values alternately
     */
    int get(String path, String... headers) throws IOException, InterruptedException {
        return get(port(), path, headers);
    }

    /** As {@link #get(String, String...)}, for a program with several ports. */
    int get(int port, String path, String... headers) throws IOException, InterruptedException {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString()).statusCode();
    }

    /** Waits until a matching root call has ended. @return the first matching root */
    Call root(Predicate<Call> wanted) throws InterruptedException, IOException {
        Predicate<Decoder> isThere =
                decoder ->
                        decoder.roots.stream()
                                .anyMatch(root -> root.end != null && wanted.test(root));
        if (!server.await(ARRIVAL_S_MAX, isThere)) {
            throw new AssertionError(
                    "no such trace; there are "
                            + shapes()
                            + ", fault "
                            + server.fault
                            + ", printed: "
                            + output());
        }
        return roots().stream().filter(wanted).findFirst().orElseThrow();
    }

    Call root(String operation) throws InterruptedException, IOException {
        return root(call -> call.operation.equals(operation));
    }

    /** Waits until at least this many root calls match. @return all matching roots */
    List<Call> roots(int count, Predicate<Call> wanted) throws InterruptedException, IOException {
        Predicate<Decoder> areThere =
                decoder -> decoder.roots.stream().filter(wanted).count() >= count;
        if (!server.await(ARRIVAL_S_MAX, areThere)) {
            throw new AssertionError(
                    "fewer than " + count + " roots: " + shapes() + ", printed: " + output());
        }
        return roots().stream().filter(wanted).collect(Collectors.toList());
    }

    /** The last value of each series of a metric, by the values of the given labels. */
    Map<List<String>, Number> samples(String name, String... labels) {
        Map<List<String>, Number> values = new HashMap<>();
        synchronized (server) {
            for (Sample sample : server.decoder().samples) {
                if (sample.name().equals(name)) {
                    List<String> key =
                            Arrays.stream(labels)
                                    .map(label -> sample.labels().get(label))
                                    .collect(Collectors.toList());
                    values.put(key, sample.value());
                }
            }
        }
        return values;
    }

    /** The bodies of all frames that the agent has sent, as text with one character per byte. */
    String sent() {
        return server.copy.toString(StandardCharsets.ISO_8859_1);
    }

    List<Call> roots() {
        synchronized (server) {
            return List.copyOf(server.decoder().roots);
        }
    }

    List<String> shapes() {
        return roots().stream().map(Call::shape).collect(Collectors.toList());
    }

    /** Waits until the program has ended. The agent sends all records before the end. */
    void end() throws InterruptedException, IOException {
        boolean ended = process.waitFor(END_S_MAX, TimeUnit.SECONDS);
        if (!ended || process.exitValue() != 0) {
            throw new AssertionError("the program failed: " + output());
        }
        if (server.fault != null) {
            throw new AssertionError("the agent violated the protocol", server.fault);
        }
    }

    /** Waits until the program has printed the text. @return false if it did not */
    boolean awaitOutput(String text) throws IOException, InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(ARRIVAL_S_MAX);
        while (!output().contains(text) && System.nanoTime() < until) {
            Thread.sleep(20);
        }
        return output().contains(text);
    }

    String output() throws IOException {
        return Files.readString(output);
    }

    @Override
    public void close() throws IOException {
        process.destroy();
        try {
            if (!process.waitFor(END_S_MAX, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        server.close();
        Files.deleteIfExists(output);
    }
}
