package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.ProbeRule;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;

import javax.tools.ToolProvider;

/** Rules of the server switch methods on and off while the program runs. */
class SwitchIT {
    private static final String REQUEST = "app.Work$Request";
    private static final int CALLS = 10;

    /** Longest wait, s; all tests share two cores. */
    private static final int WAIT_S = 90;

    private static long effectMillis(WireServer server, long revision, ProbeRule... rules)
            throws Exception {
        long begin = System.nanoTime();
        server.rules(revision, rules);
        assertTrue(
                server.awaitProbed(WAIT_S, probed -> probed.revision() == revision),
                () -> "no answer to revision " + revision + ": " + server.fault);
        return (System.nanoTime() - begin) / 1_000_000;
    }

    private static void rules(WireServer server, long revision, ProbeRule... rules)
            throws Exception {
        effectMillis(server, revision, rules);
    }

    private static Program program(WireServer server, int jdk, String... arguments) {
        return Program.on(jdk, arguments)
                .with("TACHO_SERVER", server.address())
                .with("TACHO_EXCLUDE", "app.Work.*, app.Steady.*")
                .with("TACHO_BUFFER", 1 << 18)
                .with("TACHO_FLUSH_MAX", "60s");
    }

    private static long count(WireServer server, String operation) {
        synchronized (server) {
            return count(server.decoder().roots, operation);
        }
    }

    private static long count(List<Call> calls, String operation) {
        return calls.stream()
                .mapToLong(
                        call ->
                                count(call.children, operation)
                                        + (call.operation.startsWith(operation) ? 1 : 0))
                .sum();
    }

    private static boolean await(WireServer server, String operation, long atLeast)
            throws InterruptedException {
        return server.await(WAIT_S, got -> count(server, operation) >= atLeast);
    }

    /**
     * Gives the agent time to send the events that were still in the rings when it reported the
     * rules as applied.
     */
    private static void settle() throws InterruptedException {
        Thread.sleep(1_500);
    }

    private static Path captureJar() throws IOException {
        Path jar = Files.createTempFile("capture", ".jar");
        jar.toFile().deleteOnExit();
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", "capture.Capture");
        manifest.getMainAttributes().putValue("Can-Retransform-Classes", "true");
        try (OutputStream out = Files.newOutputStream(jar)) {
            new JarOutputStream(out, manifest).close();
        }
        return jar;
    }

    private static List<String> captured(Program program) throws IOException {
        return program.output()
                .lines()
                .filter(line -> line.startsWith("bytes "))
                .map(line -> line.substring("bytes ".length()))
                .toList();
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void offRestoresTheByteCodeAndOnRecordsAgain(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(server, jdk, "until-told", "1")
                            .option("-javaagent:" + Program.JAR.toAbsolutePath())
                            .option("-javaagent:" + captureJar() + "=app/Work$Request")
                            .bare()
                            .start();
            assertTrue(await(server, REQUEST, 100), program.describe());
            assertEquals("1", server.hello.get("control"));
            rules(server, 1, ProbeRule.off("app..*"));
            settle();
            long atOff = count(server, REQUEST);
            Thread.sleep(500);
            assertEquals(atOff, count(server, REQUEST),
                    "calls are recorded although the method is off");
            assertEquals(List.of("changed", "original"), captured(program));
            assertEquals(0, server.probed().on());
            assertTrue(server.probed().off() >= 4, server.probed().toString());
            rules(server, 2, ProbeRule.off("app..*"), ProbeRule.on(REQUEST + ".middle"));
            assertTrue(await(server, REQUEST + ".middle", 10), program.describe());
            assertEquals(1, server.probed().on());
            assertEquals(1, server.probed().matched(1));
            long leaves = count(server, REQUEST + ".leaf");
            rules(server, 3);
            assertTrue(await(server, REQUEST + ".leaf", leaves + 10), program.describe());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertEquals(List.of("changed", "original", "changed", "changed"), captured(program));
            assertAllEnded(server);
        }
    }

    private static void assertAllEnded(WireServer server) {
        assertEquals(0, server.executionsDropped);
        server.decoder().roots.forEach(SwitchIT::assertEnded);
    }

    private static void assertEnded(Call call) {
        assertTrue(call.end != null && !call.failed,
                () -> "not ended, or failed: " + call.shape());
        call.children.forEach(SwitchIT::assertEnded);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void methodsThatWereNeverIncludedCanBeSwitchedOn(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(server, jdk, "until-told", "1").with("TACHO_INCLUDE", "").start();
            assertTrue(server.await(WAIT_S, got -> server.connections > 0), program.describe());
            Thread.sleep(300);
            rules(server, 9, ProbeRule.on(REQUEST));
            assertTrue(await(server, REQUEST, 50), program.describe());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertTrue(program.errors().contains("tacho probes on"), program.describe());
            assertEquals(program.number("last"), lastRequests(server));
            assertAllEnded(server);
        }
    }

    private static long lastRequests(WireServer server) {
        return server.decoder().roots.stream()
                .filter(call -> call.thread.equals("last") && call.size() == CALLS)
                .count();
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void openCallsKeepTheStateInWhichTheyBegan(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, jdk, "recursion", "120");
            program.with("TACHO_EXCLUDE", "app.Work.*, app.Steady.*").start();
            assertTrue(server.await(WAIT_S, got -> server.connections > 0), program.describe());
            String slow = "app.Steady$Slow";
            for (int revision = 1; revision <= 5; revision++) {
                Thread.sleep(250);
                rules(server, revision, new ProbeRule(revision % 2 ^ 1, slow));
            }
            program.awaitOutput("result 60", WAIT_S);
            rules(server, 6);
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertAllEnded(server);
            long calls = count(server, slow);
            assertTrue(calls > 10 && calls < 120 + 4, calls + " calls were recorded");
        }
    }

    /**
     * Checks that {@code handle} has at most three callees, all {@code middle}, and that {@code
     * middle} has at most two callees, all {@code leaf}. Callees are missing if their method was
     * off.
     */
    private static void assertPartOfRequest(Call call) {
        String name = call.operation.substring(REQUEST.length() + 1);
        int most = name.startsWith("handle") ? 3 : name.startsWith("middle") ? 2 : 0;
        assertTrue(call.children.size() <= most, call::shape);
        String below = name.startsWith("handle") ? ".middle()" : ".leaf()";
        for (Call child : call.children) {
            assertEquals(REQUEST + below, child.operation);
            assertPartOfRequest(child);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void eightThreadsRunWhileMethodsAreSwitchedFiftyTimes(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, jdk, "until-told", "8").withC2().start();
            assertTrue(await(server, REQUEST, 100), program.describe());
            long slowest = 0;
            for (int revision = 1; revision <= 50; revision++) {
                ProbeRule rule = revision % 2 == 0 ? ProbeRule.on(REQUEST) : ProbeRule.off(REQUEST);
                slowest = Math.max(slowest, effectMillis(server, revision, rule));
            }
            System.out.printf("JDK %d: the slowest of 50 rules took %d ms%n", jdk, slowest);
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertAllEnded(server);
            server.decoder().roots.forEach(SwitchIT::assertPartOfRequest);
            assertEquals(program.number("last"), lastRequests(server));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void classesLoadedLaterFollowTheRules(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, jdk, "later").with("TACHO_INCLUDE", "").start();
            program.awaitOutput("ready", WAIT_S);
            String late = "app.Steady$Late";
            rules(server, 1, ProbeRule.on(late), new ProbeRule(7, "*"), ProbeRule.on("no way"));
            assertEquals(0, server.probed().matched(0));
            assertFalse(server.probed().rules().get(1).fault().isEmpty());
            assertFalse(server.probed().rules().get(2).fault().isEmpty());
            assertTrue(program.errors().contains("\"on " + late + "\" fits no method"));
            program.say("load it");
            program.awaitOutput("called", WAIT_S);
            assertTrue(await(server, late + ".call", 3), program.describe());
            assertTrue(
                    server.awaitProbed(WAIT_S, probed -> probed.on() == 2),
                    () -> "the answer has no new counts: " + server.probed());
            assertEquals(2, server.probed().matched(0), "the rule must match call() and the constructor");
            program.say("end");
            program.finish();
            assertNull(server.fault);
        }
    }

    @Test
    void aServerThatDoesNotSupportRulesEndsTheRulesOfThePreviousServer() throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, 17, "until-told", "1").start();
            assertTrue(await(server, REQUEST, 100), program.describe());
            rules(server, 3, ProbeRule.off("*"));
            settle();
            long atOff = count(server, REQUEST);
            server.stop();
            server.start();
            assertTrue(server.awaitProbed(WAIT_S, probed -> probed.revision() == 3));
            settle();
            assertEquals(atOff, count(server, REQUEST));
            server.stop();
            server.forgetRules();
            server.start();
            assertTrue(await(server, REQUEST, atOff + 100), program.describe());
            assertNull(server.probed(), "the agent answered a server that may not support PROBED");
            program.say("end");
            program.finish();
            assertNull(server.fault);
        }
    }

    @Test
    void patternsThatSelectNothingOrEverythingAreLogged() throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(server, 17, "later")
                            .with("TACHO_INCLUDE", "app.Nowhere.*,*,app.Steady$Slow")
                            .with("TACHO_PATTERNS_CHECKED_AFTER", "1s")
                            .start();
            program.awaitOutput("ready", WAIT_S);
            Thread.sleep(2_000);
            program.say("go on");
            program.say("end");
            program.finish();
            String log = program.errors();
            assertTrue(log.contains("include: the pattern app.Nowhere.* fits no method"), log);
            assertTrue(log.matches("(?s).*pattern \\* fits everything: [0-9]+ methods.*"), log);
        }
    }

    /** A pattern of {@code exclude} without matches is not logged. */
    @Test
    void patternsOfAShortProgramAreLoggedAtItsEnd() throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(server, 17, "later")
                            .with("TACHO_INCLUDE", "app.Nowhere.*,*,app.Steady$Late")
                            .with("TACHO_EXCLUDE", "app.Neither")
                            .start();
            program.awaitOutput("ready", WAIT_S);
            program.say("go on");
            program.say("end");
            program.finish();
            assertEquals(
                    List.of("include: the pattern app.Nowhere.* fits no method"),
                    program.errors()
                            .lines()
                            .filter(line -> line.contains(" fits "))
                            .map(line -> line.replaceAll(".*(include: .* method).*", "$1"))
                            .collect(Collectors.toList()),
                    program::describe);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void noClassLoaderIsRetained(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            String guest = "app.Loaders$Guest";
            Program program = program(server, jdk, "loaders").start();
            assertTrue(await(server, guest + ".run", 10), program.describe());
            for (int revision = 1; revision <= 9; revision++) {
                Thread.sleep(100);
                rules(server, revision, new ProbeRule(revision % 2, guest));
            }
            long atOn = server.probed().on();
            assertTrue(atOn > 10, "recorded methods: " + atOn);
            program.say("end");
            program.finish();
            assertTrue(program.number("made") > 50, program.describe());
            assertEquals(0, program.number("alive"), program.describe());
            assertNull(server.fault);
            assertAllHaveEnded(server.decoder().roots);
        }
    }

    private static void assertAllHaveEnded(List<Call> calls) {
        for (Call call : calls) {
            assertTrue(call.end != null, call::shape);
            assertAllHaveEnded(call.children);
        }
    }

    /**
     * Compiles a class with a method of almost 65,535 bytes, the maximum, so that the byte code of
     * the agent does not fit.
     */
    private static Path tooLong(String name) throws IOException {
        Path folder = Files.createTempDirectory("too-long");
        Path source = folder.resolve(name + ".java");
        String body = "at += 70000;\n".repeat(13_095); // five bytes each
        Files.writeString(
                source,
                "public class "
                        + name
                        + " implements Runnable { int sum; public void run() { int at = 0;\n"
                        + body
                        + "sum = at; small(); } void small() { sum++; } }");
        int result =
                ToolProvider.getSystemJavaCompiler()
                        .run(null, null, null, "--release", "17", source.toString());
        assertEquals(0, result, "the compiler's result");
        for (Path made : List.of(folder, source, folder.resolve(name + ".class"))) {
            made.toFile().deleteOnExit(); // in reverse order, so the folder is deleted last
        }
        return folder;
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void classesThatCannotBeInstrumentedAreSkippedAndLoggedOnce(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(server, jdk, "named", "TooLong")
                            .classes(tooLong("TooLong"))
                            // On JDK 17, the agent instruments the class when it is loaded. On JDK
                            // 25, a rule later causes its retransformation.
                            .with("TACHO_INCLUDE", jdk == 17 ? "*" : REQUEST)
                            .start();
            assertTrue(await(server, REQUEST, 50), program.describe());
            for (int revision = 1; revision <= 6; revision++) {
                rules(server, revision, new ProbeRule(revision % 2, "*"));
            }
            long atOff = server.probed().on();
            rules(server, 7, ProbeRule.on("..*"));
            assertTrue(server.probed().on() > atOff, server.probed().toString());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertEquals(0, count(server, "TooLong"), "calls of a class that cannot be instrumented");
            long named = program.errors().lines().filter(line -> line.contains("TooLong")).count();
            assertEquals(1, named, program.describe());
        }
    }
}
