package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Declared;
import io.tachograph.testing.Decoder;
import io.tachograph.testing.ProbeRule;
import io.tachograph.testing.Sample;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Programs with a limit on traces: recorded traces are complete, and all traces are counted. */
class UnsampledIT {
    /** Longest wait, s; all tests share two cores. */
    private static final int WAIT_S = 90;

    private static final Path API = Path.of("../api/target/classes");
    private static final String KEPT = "tacho_agent_traces_kept_total";
    private static final String UNSAMPLED = "tacho_agent_traces_unsampled_total";
    private static final String CALLS = "tacho_agent_calls_unsampled_total";
    private static final String ENTRIES = "app.Entries$Traces.";
    private static final String HOT = ENTRIES + "hot(boolean)";
    private static final String RARE = ENTRIES + "rare(int)";
    private static final String HANDS = ENTRIES + "hands(ExecutorService)";
    private static final String PIECE = ENTRIES + "piece()";
    private static final String STEP = ENTRIES + "step()";
    private static final String REQUEST = "app.Work$Request.";

    private static Program program(WireServer server, int jdk, int tracesMax, String... arguments) {
        return Program.on(jdk, arguments)
                .classes(API)
                .with("TACHO_SERVER", server.address())
                .with("TACHO_EXCLUDE", "app.Work.*, app.Steady.*, app.Virtual.*, app.Allocation.*")
                .with("TACHO_TRACES_MAX", tracesMax)
                .with("TACHO_BUFFER", 1 << 18)
                .with("TACHO_SAMPLE_INTERVAL", "500ms")
                .with("TACHO_FLUSH_MAX", "60s");
    }

    /**
     * The last value of each series of a metric, by operation; the key is empty for a series
     * without an operation.
     */
    private static Map<String, Long> last(Decoder got, String name) {
        Map<String, Long> last = new TreeMap<>();
        for (Sample sample : got.samples) {
            if (sample.name().equals(name)) {
                String operation = sample.labels().getOrDefault("operation", "");
                last.put(operation, sample.value().longValue());
            }
        }
        return last;
    }

    private static Decoder sound(WireServer server) {
        assertNull(server.fault, () -> "the server found a fault: " + server.fault);
        assertEquals(0, server.executionsDropped);
        return server.decoder();
    }

    /**
     * All recorded traces have arrived, and recorded and unrecorded traces add up to all traces of
     * the program.
     */
    private static void assertCounts(Decoder got, Map<String, Long> made) {
        Map<String, Long> kept = last(got, KEPT);
        Map<String, Long> unsampled = last(got, UNSAMPLED);
        Map<String, Long> all = new TreeMap<>(kept);
        unsampled.forEach((operation, traces) -> all.merge(operation, traces, Long::sum));
        assertEquals(made, all);
        Map<String, Long> there =
                got.roots.stream()
                        .filter(root -> root.parent == null)
                        .collect(
                                Collectors.groupingBy(
                                        root -> root.operation,
                                        TreeMap::new,
                                        Collectors.counting()));
        kept.values().removeIf(traces -> traces == 0);
        assertEquals(kept, there);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void wholeTracesAreRecordedUpToTheLimit(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.rules(1);
            Program program =
                    program(server, jdk, 100, "entries")
                            .with("TACHO_INCLUDE", ENTRIES + "*")
                            .with("TACHO_AGGREGATE", ENTRIES + "tiny")
                            .with("TACHO_BUFFER", 1 << 14)
                            .start();
            assertTrue(
                    server.awaitProbed(WAIT_S, probed -> !probed.moved().isEmpty()),
                    program::describe);
            String moved = server.probed().moved().get(0).toString();
            assertTrue(
                    moved.matches(".*\\(traces\\), reason=rate [0-9.]+( k)?/s over 100/s,.*"),
                    moved);
            assertTrue(
                    server.await(
                            WAIT_S,
                            got ->
                                    got.roots.stream()
                                                    .anyMatch(root -> is(root, HOT) && root.failed)
                                            && got.roots.stream()
                                                            .filter(root -> is(root, HANDS))
                                                            .count()
                                                    >= 10),
                    program::describe);
            program.say("end");
            program.finish();
            Decoder got = sound(server);
            long hot = program.number("hot") + program.number("fails");
            long rare = program.number("rare");
            long hands = program.number("hands");
            assertCounts(got, Map.of(HOT, hot, RARE, rare, HANDS, hands));
            assertWhole(got.roots);

            // The limit applies in each second. In addition, the first trace of each of the three
            // operations is recorded.
            Map<String, Long> kept = last(got, KEPT);
            long all = kept.values().stream().mapToLong(Long::longValue).sum();
            assertTrue(all <= 100 * (program.millis() / 1_000 + 1) + 3, all + " kept");
            assertTrue(kept.get(HOT) < hot / 2, kept + " of " + hot);
            assertTrue(kept.get(RARE) >= (rare + 1) / 2, kept + " of " + rare);
            assertTrue(kept.get(HANDS) >= 10, kept + " of " + hands);

            // All calls of the program, including those of tasks and threads.
            long calls = 3 * hot + 2 * rare + 8 * hands;
            assertEquals(calls, got.callsEnded + last(got, CALLS).get(""));
            Map<String, Long> counts = last(got, "tacho_operation_seconds_count");
            assertEquals(Map.of(ENTRIES + "tiny()", 2 * hot + rare + 4 * hands), counts);
            assertNoted(got, rare, kept.get(RARE));
            assertRatio(got);
            assertTrue(
                    program.errors().contains("some traces are not recorded"), program.describe());
        }
    }

    private static boolean is(Call root, String operation) {
        return root.operation.equals(operation);
    }

    private static void assertWhole(List<Call> roots) {
        Set<String> expected =
                Set.of(
                        HOT + "(" + STEP + " " + STEP + ")",
                        HOT + "!(" + STEP + " " + STEP + ")",
                        RARE + "(" + STEP + ")",
                        HANDS + "(" + STEP + ")",
                        PIECE + "(" + STEP + ")");
        Set<String> shapes = roots.stream().map(Call::shape).collect(Collectors.toSet());
        assertEquals(expected, shapes);
        Map<String, Long> pieces =
                roots.stream()
                        .filter(root -> root.operation.equals(PIECE))
                        .collect(Collectors.groupingBy(root -> root.parent, Collectors.counting()));
        roots.stream()
                .filter(root -> root.operation.equals(HANDS))
                .forEach(root -> assertEquals(3, pieces.remove(root.span),
                        "each recorded trace must have three pieces"));
        assertEquals(Map.of(), pieces, "pieces whose trace has not arrived");
    }

    /**
     * All declared records have arrived: those in recorded traces with the id of the trace, all
     * others without an id.
     */
    private static void assertNoted(Decoder got, long rare, long kept) {
        List<Declared> noted =
                got.declared.stream()
                        .filter(record -> record.type().name().equals("app_noted_rare"))
                        .toList();
        assertEquals(rare, noted.size());
        assertEquals(kept, noted.stream().filter(record -> record.trace() != null).count());
    }

    private static void assertRatio(Decoder got) {
        List<Double> ratios =
                got.samples.stream()
                        .filter(sample -> sample.name().equals("tacho_agent_sampling_ratio"))
                        .map(sample -> sample.value().doubleValue())
                        .toList();
        assertTrue(ratios.stream().allMatch(ratio -> ratio >= 0 && ratio <= 1), ratios.toString());
        assertTrue(ratios.stream().anyMatch(ratio -> ratio < 1), ratios.toString());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void noTraceIsLostOverManySwitches(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, jdk, 50, "until-told", "6").start();
            String[] patterns = {REQUEST + "*", REQUEST + "leaf", REQUEST + "m*", REQUEST + "h*"};
            for (int revision = 1; revision <= 20; revision++) {
                server.rules(revision, new ProbeRule(1 + revision % 2, patterns[revision % 7 % 4]));
                long asked = revision;
                assertTrue(
                        server.awaitProbed(WAIT_S, probed -> probed.revision() == asked),
                        program::describe);
                if (revision == 10) {
                    int before = server.connections;
                    server.stop();
                    server.start();
                    assertTrue(server.await(WAIT_S, got -> server.connections > before));
                    Thread.sleep(300);
                }
            }
            program.say("end");
            program.finish();
            Decoder got = sound(server);
            long requests =
                    program.number("last")
                            + program.output()
                                    .lines()
                                    .filter(line -> line.startsWith("requests "))
                                    .mapToLong(line -> Long.parseLong(line.substring(9)))
                                    .sum();
            long counted =
                    got.samples.stream()
                            .filter(s -> s.name().equals("tacho_operation_seconds_count"))
                            .collect(
                                    Collectors.toMap(
                                            sample -> sample.labels(),
                                            sample -> sample.value().longValue(),
                                            (before, now) -> now))
                            .values()
                            .stream()
                            .mapToLong(Long::longValue)
                            .sum();
            long unsampled = last(got, CALLS).get("");
            assertTrue(counted > 0 && unsampled > 0 && got.callsEnded > 0);
            assertEquals(10 * requests, got.callsEnded + counted + unsampled);
            long traces = last(got, KEPT).values().stream().mapToLong(Long::longValue).sum();
            assertEquals(traces, got.roots.size());
        }
    }

    /** The budget has the same effect with and without a limit on traces. */
    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theBudgetSwitchesMethodsOff(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.rules(1);
            Program program =
                    program(server, jdk, 1_000_000, "until-told", "4")
                            .with("TACHO_OVERHEAD_MAX", "0.0001%")
                            .start();
            assertTrue(
                    server.awaitProbed(WAIT_S, probed -> probed.moved().size() == 4),
                    () -> server.probed() + " " + program.describe());
            assertEquals(
                    Set.of(
                            "(all)",
                            REQUEST + "handle()",
                            REQUEST + "middle()",
                            REQUEST + "leaf()"),
                    server.probed().moved().stream()
                            .map(moved -> moved.operation())
                            .collect(Collectors.toSet()));
            server.probed()
                    .moved()
                    .forEach(
                            moved ->
                                    assertTrue(
                                            moved.reason().matches("overhead .* % over 0.0001 %"),
                                            moved.toString()));
            program.say("end");
            program.finish();
            Decoder got = sound(server);
            assertEquals(
                    Map.of("", 1_000_000L), last(got, "tacho_agent_traces_per_second_max"));
            assertEquals(Map.of("", 3L), last(got, "tacho_agent_moved_operations"));
        }
    }

    @Test
    void virtualThreadsRecordWholeTracesOrNone() throws Exception {
        try (WireServer server = new WireServer()) {
            program(server, 25, 100, "virtual", "500").run();
            Decoder got = sound(server);
            String body = "app.Virtual$Body.";
            assertCounts(got, Map.of(body + "outer()", 1_500L));
            String inner = body + "inner()";
            got.roots.forEach(
                    root ->
                            assertEquals(
                                    body + "outer()(" + inner + " " + inner + ")", root.shape()));
            assertTrue(got.roots.size() >= 100 && got.roots.size() < 1_500);
            assertEquals(3 * 1_500, got.callsEnded + last(got, CALLS).get(""));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aStackOverflowDoesNotDisturbTheProgram(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            program(server, jdk, 1, "stack-overflow").with("TACHO_BUFFER", 1 << 20).run();
            Decoder got = sound(server);
            String endless = "app.Work$Endless.";
            assertCounts(got, Map.of(endless + "step(int)", 20L, endless + "after()", 20L));
            got.roots.forEach(
                    root ->
                            assertEquals(
                                    root.operation.equals(endless + "step(int)"), root.failed));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void nothingIsAllocated(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(server, jdk, 1, "allocation").run();
            assertTrue(program.number("bytes") < 2_000, program.describe());
            assertCounts(sound(server), Map.of(REQUEST + "handle()", 500_000L));
        }
    }
}
