package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Decoder;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;

/** Compares the records that the server receives with the actions of the program. */
class RecordingIT {
    /**
     * Size of the ring, words; so large that no call is dropped, although the sender shares two
     * busy cores.
     */
    private static final int BUFFER = 1 << 20;

    /** Runs the program. @return the records that the server received */
    private static Decoder record(int jdk, String... arguments) throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(jdk, arguments)
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_BUFFER", List.of(arguments).contains("64") ? BUFFER / 16 : BUFFER)
                    .with("TACHO_FLUSH_MAX", "30s")
                    .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(0, server.executionsDropped);
            return server.decoder();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordedTracesEqualTheCallsOfTheProgram(int jdk) throws Exception {
        Decoder got = record(jdk, "shapes");
        String calls = "app.Work$Calls.";
        String child = "app.Work$Child.<init>(int)";
        String helper = calls + "helper(int)";
        List<String> expected =
                List.of(
                        calls + "<init>(int)",
                        calls + "ok()(" + helper + " " + helper + ")",
                        calls + "fails()!(" + calls + "inner()!)",
                        calls + "<init>(int)!",
                        calls + "<init>(int)!",
                        calls + "<init>(int)",
                        child + "(" + helper + ")",
                        calls + "größe漢字(String, int[])");
        List<String> shapes = got.roots.stream().map(Call::shape).toList();
        assertEquals(expected, shapes.subList(0, expected.size()));
        Call failed = got.roots.get(2);
        assertEquals("java.lang.IllegalStateException: boom", failed.attributes.get("exception"));
        assertEquals(
                "java.lang.IllegalStateException: boom",
                failed.children.get(0).attributes.get("exception"));
        assertEquals(
                "java.lang.IllegalArgumentException: negativ: ö 漢 😀",
                got.roots.get(3).attributes.get("exception"));
        Call deep = got.roots.get(expected.size());
        assertEquals(1_000, deep.depth());
        assertEquals(1_000, deep.size());
        assertTrue(deep.start <= deep.end && deep.end - deep.start < 1_000_000_000L);
        Call mischief = got.roots.get(expected.size() + 1);
        assertEquals("app.Work$Calls$1: raw", mischief.children.get(0).attributes.get("exception"));
        assertEquals("main", deep.thread);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void codeOfExceptionsIsNotRun(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "shapes").with("TACHO_SERVER", server.address()).run();
            assertFalse(program.output().contains("getMessage was run"), program.describe());
            assertEquals(1, program.errors().lines().count(), program.errors());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void stackOverflowLeavesWholeTrees(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(jdk, "stack-overflow")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_BUFFER", BUFFER)
                    .with("TACHO_FLUSH_MAX", "30s")
                    .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            Decoder got = server.decoder();
            List<Call> after =
                    got.roots.stream().filter(call -> call.operation.endsWith("after()")).toList();
            List<Call> steps =
                    got.roots.stream()
                            .filter(call -> call.operation.endsWith("step(int)"))
                            .toList();
            assertEquals(20, after.size());
            assertEquals(20, steps.size());
            steps.forEach(
                    call ->
                            assertTrue(
                                    call.failed && call.depth() > 1_000,
                                    () -> "depth " + call.depth()));
            steps.forEach(
                    call ->
                            assertTrue(
                                    call.attributes
                                            .get("exception")
                                            .startsWith("java.lang.StackOverflowError")));
        }
    }

    @ParameterizedTest
    @CsvSource({"17, 8, 2000", "25, 8, 2000", "17, 64, 250", "25, 64, 250"})
    void everyCallOfEveryThreadArrives(int jdk, int threads, int requests) throws Exception {
        int all = threads * requests;
        Decoder got = record(jdk, "threads", "" + threads, "" + requests);
        assertEquals(all, got.roots.size());
        assertEquals(all * 10, got.callsEnded);
        String request = "app.Work$Request.";
        String middle = request + "middle()(" + request + "leaf() " + request + "leaf())";
        String whole = request + "handle()(" + String.join(" ", middle, middle, middle) + ")";
        assertTrue(got.roots.stream().allMatch(call -> call.shape().equals(whole)));
        assertEquals(threads, got.roots.stream().map(call -> call.thread).distinct().count());
        assertEquals(all, got.roots.stream().map(call -> call.traceId).distinct().count());
    }

    @Test
    void virtualThreadsBorrowBuffers() throws Exception {
        Decoder got = record(25, "virtual", "500");
        assertEquals(500 * 3, got.roots.size());
        String inner = "app.Virtual$Body.inner()";
        assertTrue(
                got.roots.stream()
                        .allMatch(
                                call ->
                                        call.shape()
                                                .equals(
                                                        "app.Virtual$Body.outer()("
                                                                + inner
                                                                + " "
                                                                + inner
                                                                + ")")));
    }

    @Test
    void callsOfVirtualThreadsWithoutABufferAreCounted() throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(25, "virtual", "2000")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_VIRTUAL_THREADS_MAX", 64)
                    .run();
            assertNull(server.fault);
            assertEquals(2_000 * 9, server.decoder().callsEnded + server.executionsDropped);
            assertTrue(server.executionsDropped > 0);
            assertEquals(
                    server.decoder().roots.size() * 3L,
                    server.decoder().callsEnded,
                    "each trace must have its three calls");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void nothingIsAllocated(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "allocation").with("TACHO_SERVER", server.address()).run();
            // Reading the counter may itself allocate a few bytes.
            assertTrue(program.number("bytes") < 2_000, program.describe());
        }
    }

    private static void beginWhenConnected(WireServer server, Program program) throws Exception {
        assertTrue(server.await(90, got -> !server.hello.isEmpty()), program.describe());
        program.say("go");
        program.finish();
    }

    /** There are sixteen times as many threads as buffers. */
    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void buffersOfEndedThreadsAreReused(int jdk) throws Exception {
        int threads = 1_024;
        int failing = 103;
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "short-threads", "" + threads)
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_EXCLUDE", "app.Work.*, app.Trouble.*, app.Steady.*")
                            .with("TACHO_THREADS_MAX", 64)
                            .with("TACHO_BUFFER", 1_024)
                            .with("TACHO_FLUSH_MAX", "30s")
                            .start();
            beginWhenConnected(server, program);
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            Decoder got = server.decoder();
            assertEquals(
                    threads * 10 + failing,
                    got.callsEnded + server.executionsDropped,
                    program.describe());
            assertTrue(got.callsEnded > 64 * 10, "buffers are not reused: " + got.callsEnded);
            for (Call root : got.roots) {
                boolean fails = root.operation.equals("app.Trouble$Body.fail()");
                assertEquals(fails, root.failed, root::shape);
                assertEquals(fails ? 1 : 10, root.size(), root::shape);
                assertTrue(root.thread.matches("short-[0-9]+|ended"), root.thread);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordingContinuesAfterMemoryRunsOut(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "out-of-memory", "5")
                            .option("-Xmx64m")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_EXCLUDE", "app.Work.*, app.Trouble.*, app.Steady.*")
                            .with("TACHO_QUEUE", "1MiB")
                            .with("TACHO_FLUSH_MAX", "30s")
                            .start();
            beginWhenConnected(server, program);
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            Decoder got = server.decoder();
            List<Call> eaters =
                    got.roots.stream().filter(call -> call.operation.endsWith("eat()")).toList();
            long requests =
                    got.roots.stream().filter(call -> call.operation.endsWith("handle()")).count();
            assertTrue(eaters.size() + requests + server.executionsDropped >= 1_010);
            assertTrue(eaters.stream().allMatch(call -> call.failed), program.describe());
            assertTrue(
                    eaters.stream()
                            .map(call -> call.attributes.getOrDefault("exception", ""))
                            .allMatch(text -> text.startsWith("java.lang.OutOfMemoryError")),
                    program.describe());
            assertTrue(requests > 0, program.describe());
        }
    }

    /**
     * The samplers run a second after the start, and again an hour later. The program ends before
     * the second run, so the agent must send the final counts at the end.
     */
    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theFinalCountsArrive(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(jdk, "loop", "3", "1")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_SAMPLERS", "true")
                    .with("TACHO_SAMPLE_INTERVAL", "60m")
                    .with("TACHO_BUFFER", 64)
                    .with("TACHO_FLUSH_MAX", "30s")
                    .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            Decoder got = server.decoder();
            assertEquals(got.callsEnded, last(got, "tacho_agent_sent_total", "execution"));
            assertEquals(
                    server.executionsDropped, last(got, "tacho_agent_dropped_total", "execution"));
            assertEquals(0, last(got, "tacho_agent_dropped_total", "entry"));
        }
    }

    private static long last(Decoder got, String name, String kind) {
        return got.samples.stream()
                .filter(sample -> sample.name().equals(name))
                .filter(sample -> kind.equals(sample.labels().get("kind")))
                .reduce((before, after) -> after)
                .map(sample -> sample.value().longValue())
                .orElse(-1L);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aCallCostsFewBytes(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(jdk, "threads", "2", "5000")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_BUFFER", BUFFER)
                    .with("TACHO_FLUSH_MAX", "30s")
                    .run();
            double bytes = (double) server.allBytes / server.decoder().callsEnded;
            assertTrue(bytes < 12, "bytes a call: " + bytes);
            System.out.printf("JDK %d: %.2f bytes a call%n", jdk, bytes);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theAgentCanBeAttachedLater(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "loop", "60", "5")
                            .with("TACHO_SERVER", server.address())
                            .bare()
                            .start();
            Thread.sleep(500);
            program.attach("service = \"attached\"\n");
            assertTrue(server.await(40, got -> got.callsEnded > 100), program.describe());
            assertEquals("attached", server.hello.get("service"));
            program.attach("");
            program.terminate();
            assertTrue(program.errors().contains("agent already loaded"));
            assertNull(server.fault);
            assertTrue(
                    server.decoder().roots.stream()
                            .allMatch(call -> call.operation.startsWith("app.Work$Request.")));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "          | 2 usage: java -jar tachograph-agent.jar PID",
                "shop      | 2 usage: java -jar tachograph-agent.jar PID",
                "1 a b     | 2 usage: java -jar tachograph-agent.jar PID",
                "999999999 | 1 cannot attach to process 999999999: ",
            })
    void attachingFailsWithAMessage(String arguments, String expected) throws Exception {
        String[] words = arguments == null ? new String[0] : arguments.split(" ");
        String said = Program.attach(17, words);
        assertTrue(said.startsWith(expected), said);
        assertFalse(said.contains("\tat "), said);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aProgramMayLackPartsOfTheJdk(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "loop", "3", "5")
                            .option("--limit-modules")
                            .option("java.base,java.instrument")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_SAMPLERS", "true")
                            .with("TACHO_SAMPLE_INTERVAL", "200ms")
                            .run();
            assertEquals(program.number("count") * 10, server.decoder().callsEnded);
            assertTrue(program.errors().contains("java.management"), program.describe());
            // The agent sends its counts while the program runs, and again at the end.
            long counts =
                    server.decoder().samples.stream()
                            .filter(sample -> sample.name().equals("tacho_agent_sent_total"))
                            .count();
            assertTrue(counts > 2, program.describe());
        }
    }

    @Test
    void annotationPatternsSelectMethods() throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(17, "watched")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_INCLUDE", "@app.Work$Watched")
                    .with("TACHO_EXCLUDE", "")
                    .run();
            assertEquals(
                    List.of("app.Work$Marked.marked()"),
                    server.decoder().roots.stream().map(Call::shape).toList());
        }
    }

    private static boolean hasSample(Decoder got, String name, String service) {
        return got.samples.stream()
                .filter(sample -> sample.name().equals(name))
                .anyMatch(sample -> sample.labels().get("service").equals(service));
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theSamplersSendTheirSamples(int jdk) throws Exception {
        List<String> names =
                List.of(
                        "jvm_memory_used_bytes",
                        "jvm_gc_collection_seconds_total",
                        "jvm_threads_current",
                        "jvm_classes_loaded",
                        "process_cpu_seconds_total",
                        "process_uptime_seconds",
                        "tacho_agent_dropped_total");
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "sleep", "600")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_SAMPLERS", "true")
                            .with("TACHO_SAMPLE_INTERVAL", "200ms")
                            .with("TACHO_SERVICE", "täst")
                            .start();
            for (String name : names) {
                assertTrue(server.await(60, got -> hasSample(got, name, "täst")), name);
            }
            program.kill();
            assertNull(server.fault);
            assertEquals("täst", server.hello.get("service"));
        }
    }
}
