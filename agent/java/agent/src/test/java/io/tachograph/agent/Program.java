package io.tachograph.agent;

import io.tachograph.testing.Jdks;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** One run of {@code app.Work} with the agent, in a separate JVM. */
final class Program {
    static final Path JAR =
            Path.of(System.getProperty("tacho.jar", "../target/tachograph-agent.jar"));
    private static final Path CLASSES = Path.of(System.getProperty("tacho.app", "target/app"));

    /** Processes that the test of this thread has started. */
    private static final ThreadLocal<List<Process>> STARTED =
            ThreadLocal.withInitial(ArrayList::new);

    private final int jdk;
    private final List<String> arguments;
    private final Map<String, String> environment = new LinkedHashMap<>();
    private final List<String> options = new ArrayList<>();
    private String classes = CLASSES.toAbsolutePath().toString();
    private String config;
    private boolean bare;
    private Process process;
    private Path output;
    private Path errors;
    private long began;

    private Program(int jdk, List<String> arguments) {
        this.jdk = jdk;
        this.arguments = arguments;
        environment.put("TACHO_INCLUDE", "app..*");
        environment.put(
                "TACHO_EXCLUDE",
                "app.Work.*, app.Virtual.*, app.Allocation.*, app.Price.*, app.Busy.*");
        environment.put("TACHO_SAMPLERS", "false");
    }

    static void killStarted() {
        STARTED.get().forEach(Process::destroyForcibly);
        STARTED.remove();
    }

    static Program on(int jdk, String... arguments) {
        return new Program(jdk, List.of(arguments));
    }

    Program with(String variable, Object value) {
        environment.put(variable, String.valueOf(value));
        return this;
    }

    /** Lets the second compiler (C2) compile the program, as in production. */
    Program withC2() {
        return option("-XX:TieredStopAtLevel=4");
    }

    Program option(String option) {
        options.add(option);
        return this;
    }

    Program classes(Path folder) {
        classes += java.io.File.pathSeparator + folder.toAbsolutePath();
        return this;
    }

    /** Sets the path of the configuration file, the argument of {@code -javaagent}. */
    Program config(String path) {
        config = path;
        return this;
    }

    /** Omits {@code -javaagent}; {@link #attach} can load the agent later. */
    Program bare() {
        bare = true;
        return this;
    }

    /** Loads the agent into the running program from the command line, with a file of settings. */
    void attach(String settings) throws IOException, InterruptedException {
        Path file = Files.createTempFile("tacho", ".toml");
        file.toFile().deleteOnExit();
        Files.writeString(file, settings);
        String said = attach(jdk, Long.toString(process.pid()), file.toString());
        if (!said.equals("0 the agent is in process " + process.pid() + "\n")) {
            throw new AssertionError(said);
        }
    }

    /**
     * Runs {@code java -jar tachograph-agent.jar}.
     *
     * @return exit code and output
     */
    static String attach(int jdk, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Jdks.java(jdk).toString(), "-jar"));
        command.add(JAR.toString());
        command.addAll(List.of(arguments));
        Process attaching = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(attaching.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return attaching.waitFor() + " " + said;
    }

    Program start() throws IOException {
        output = Files.createTempFile("tacho-out", ".txt");
        errors = Files.createTempFile("tacho-err", ".txt");
        output.toFile().deleteOnExit();
        errors.toFile().deleteOnExit();
        List<String> command = new ArrayList<>(Jdks.command(jdk));
        command.addAll(List.of("-Xshare:auto", "-Dfile.encoding=UTF-8"));
        command.addAll(options);
        if (!bare) {
            command.add(
                    "-javaagent:" + JAR.toAbsolutePath() + (config == null ? "" : "=" + config));
        }
        command.addAll(List.of("-cp", classes, "app.Work"));
        command.addAll(arguments);
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .redirectOutput(output.toFile())
                        .redirectError(errors.toFile());
        builder.environment()
                .keySet()
                .removeIf(name -> name.startsWith("TACHO_") || name.equals("JAVA_TOOL_OPTIONS"));
        builder.environment().putAll(environment);
        began = System.nanoTime();
        process = builder.start();
        STARTED.get().add(process);
        return this;
    }

    Program run() throws IOException, InterruptedException {
        return start().finish();
    }

    void awaitOutput(String text, int seconds) throws IOException, InterruptedException {
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        while (!output().contains(text)) {
            if (System.nanoTime() > until) {
                throw new AssertionError("no \"" + text + "\" in the " + describe());
            }
            Thread.sleep(20);
        }
    }

    void say(String line) throws IOException {
        OutputStream in = process.getOutputStream();
        in.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        in.flush();
    }

    /**
     * Waits for the end. Fails unless the exit code is 0 and the program has printed {@code end}.
     */
    Program finish() throws IOException, InterruptedException {
        if (!process.waitFor(120, TimeUnit.SECONDS)) {
            kill();
            throw new AssertionError("the program did not end; " + describe());
        }
        if (process.exitValue() != 0 || !output().contains("end\n")) {
            throw new AssertionError(
                    "the program ended with " + process.exitValue() + "; " + describe());
        }
        return this;
    }

    /** Sends SIGTERM. @return ms until the process ended */
    long terminate() throws InterruptedException {
        long from = System.nanoTime();
        process.destroy();
        if (!process.waitFor(120, TimeUnit.SECONDS)) {
            kill();
        }
        return (System.nanoTime() - from) / 1_000_000;
    }

    void kill() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    long millis() {
        return (System.nanoTime() - began) / 1_000_000;
    }

    String output() throws IOException {
        return Files.readString(output, StandardCharsets.UTF_8);
    }

    String errors() throws IOException {
        return Files.readString(errors, StandardCharsets.UTF_8);
    }

    /**
     * The number after the last occurrence of a word in the output, as in {@code count 12}; -1 if
     * the word does not occur.
     */
    long number(String name) throws IOException {
        String found = null;
        String[] words = output().split("\\s+");
        for (int at = 0; at + 1 < words.length; at++) {
            found = words[at].equals(name) ? words[at + 1] : found;
        }
        return found == null ? -1 : (long) Double.parseDouble(found);
    }

    String describe() {
        try {
            return "output: " + output() + " errors: " + errors();
        } catch (IOException e) {
            return e.toString();
        }
    }
}
