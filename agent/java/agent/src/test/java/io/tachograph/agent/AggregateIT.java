package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Declared;
import io.tachograph.testing.Decoder;
import io.tachograph.testing.ProbeRule;
import io.tachograph.testing.Probed;
import io.tachograph.testing.Sample;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Calls that are counted instead of recorded, because of a setting, a rule or a limit. */
class AggregateIT {
    private static final String REQUEST = "app.Work$Request";

    /** Longest wait, s; all tests share two cores. */
    private static final int WAIT_S = 90;

    private static final String COUNT = "tacho_operation_seconds_count";

    private static Program program(WireServer server, int jdk, String... arguments) {
        return Program.on(jdk, arguments)
                .with("TACHO_SERVER", server.address())
                .with("TACHO_EXCLUDE", "app.Work.*, app.Steady.*, app.Virtual.*")
                .with("TACHO_BUFFER", 1 << 18)
                .with("TACHO_SAMPLE_INTERVAL", "500ms")
                .with("TACHO_FLUSH_MAX", "60s");
    }

    /**
     * The last value of each series of a metric, by {@code operation<caller}. Only the last bucket
     * ({@code +Inf}) is included.
     */
    private static Map<String, Double> series(Decoder got, String name) {
        Map<String, Double> last = new TreeMap<>();
        for (Sample sample : got.samples) {
            if (sample.name().equals(name)
                    && sample.labels().getOrDefault("le", "+Inf").equals("+Inf")) {
                String pair =
                        sample.labels().get("operation") + "<" + sample.labels().get("caller");
                last.put(pair, sample.value().doubleValue());
            }
        }
        return last;
    }

    private static boolean isMove(Declared record, Map<String, Object> said) {
        return record.type().name().equals("tacho_agent_moved") && record.values().equals(said);
    }

    private static long aggregated(Decoder got, String operation) {
        return series(got, COUNT).entrySet().stream()
                .filter(entry -> entry.getKey().startsWith(operation))
                .mapToLong(entry -> entry.getValue().longValue())
                .sum();
    }

    private static long recorded(List<Call> calls, String operation) {
        return calls.stream()
                .mapToLong(
                        call ->
                                recorded(call.children, operation)
                                        + (call.operation.startsWith(operation) ? 1 : 0))
                .sum();
    }

    private static long sum(Program program, String word) throws Exception {
        return program.output()
                .lines()
                .filter(line -> line.startsWith(word + " "))
                .mapToLong(line -> Long.parseLong(line.substring(word.length() + 1)))
                .sum();
    }

    /**
     * For each pair of operation and caller, the last bucket equals the count, no bucket is less
     * than the bucket before, and the sum is above 0 if there are calls.
     */
    private static void assertSeriesAgree(Decoder got) {
        Map<String, Double> counts = series(got, COUNT);
        assertEquals(counts, series(got, "tacho_operation_seconds_bucket"));
        Map<String, Double> sums = series(got, "tacho_operation_seconds_sum");
        assertEquals(counts.keySet(), sums.keySet());
        counts.forEach((pair, count) -> assertTrue(count == 0 || sums.get(pair) > 0, pair));
        Map<String, Double> below = new TreeMap<>();
        for (Sample sample : got.samples) {
            if (sample.name().equals("tacho_operation_seconds_bucket")) {
                String key = sample.labels().get("operation") + sample.labels().get("caller");
                key += sample.at();
                double value = sample.value().doubleValue();
                boolean first = sample.labels().get("le").equals("0.000000064");
                assertTrue(first || value >= below.get(key),
                        "a bucket is less than the one before: " + sample);
                below.put(key, value);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void noCallIsLostOrCountedTwiceOverManySwitches(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            // On a busy machine this takes minutes, and the server keeps all records in memory.
            Program program =
                    program(server, jdk, "until-told", "8", "2000000").withC2().start();
            String[] patterns = {REQUEST, REQUEST + ".leaf", REQUEST + ".middle", REQUEST + ".h*"};
            for (int revision = 1; revision <= 40; revision++) {
                int state = revision % 2 == 0 ? 1 : 2;
                server.rules(revision, new ProbeRule(state, patterns[revision % 7 % 4]));
                long asked = revision;
                // The first answer may come before the classes are loaded.
                assertTrue(
                        server.awaitProbed(
                                WAIT_S,
                                probed ->
                                        probed.revision() == asked
                                                && (state == 1 || probed.aggregated() > 0)),
                        () -> String.valueOf(server.probed()));
            }
            program.say("end");
            program.finish();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(0, server.executionsDropped);
            Decoder got = server.decoder();
            long requests = sum(program, "requests") + program.number("last");
            Map<String, Integer> perRequest = Map.of(".handle", 1, ".middle", 3, ".leaf", 6);
            perRequest.forEach(
                    (method, calls) -> {
                        long records = recorded(got.roots, REQUEST + method);
                        long counts = aggregated(got, REQUEST + method);
                        assertEquals(calls * requests, records + counts, method);
                        assertTrue(
                                records > 0 && counts > 0,
                                records + " recorded, " + counts + " counted");
                    });
            assertEquals(
                    List.of(
                            REQUEST + ".handle()<(none)",
                            REQUEST + ".leaf()<" + REQUEST + ".middle()",
                            REQUEST + ".middle()<" + REQUEST + ".handle()"),
                    List.copyOf(series(got, COUNT).keySet()));
            assertSeriesAgree(got);
        }
    }

    @ParameterizedTest
    @CsvSource({"outer", "inner", "*"})
    void callsOfVirtualThreadsAreCounted(String method) throws Exception {
        try (WireServer server = new WireServer()) {
            Program.on(25, "virtual", "500")
                    .with("TACHO_SERVER", server.address())
                    .with("TACHO_FLUSH_MAX", "60s")
                    .with("TACHO_AGGREGATE", "app.Virtual$Body." + method)
                    .run();
            assertNull(server.fault);
            Decoder got = server.decoder();
            String body = "app.Virtual$Body.";
            for (String name : List.of("outer", "inner")) {
                long all = recorded(got.roots, body + name) + aggregated(got, body + name);
                assertEquals(name.equals("outer") ? 1_500 : 3_000, all, name);
                boolean counts = method.equals("*") || method.equals(name);
                assertEquals(counts, aggregated(got, body + name) > 0, name);
            }
            assertEquals(0, server.executionsDropped);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void constructorsFailuresAndRecursionsAreCounted(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            program(server, jdk, "shapes").with("TACHO_AGGREGATE", "app..*").run();
            assertNull(server.fault);
            Decoder got = server.decoder();
            String calls = "app.Work$Calls.";
            assertEquals(0, got.callsEnded);
            assertEquals(4, aggregated(got, calls + "<init>"));
            assertEquals(1, aggregated(got, "app.Work$Child.<init>"));
            assertEquals(1_000, aggregated(got, calls + "down"));
            assertEquals(999.0, series(got, COUNT).get(calls + "down(int)<" + calls + "down(int)"));
            Map<String, Double> failed = series(got, "tacho_operation_failed_total");
            assertEquals(1, failed.get(calls + "inner()<" + calls + "fails()"));
            assertEquals(2, failed.get(calls + "<init>(int)<(none)"));
            assertEquals(0, failed.get(calls + "ok()<(none)"));
            assertSeriesAgree(got);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aStackOverflowDoesNotDisturbTheProgram(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            program(server, jdk, "stack-overflow").with("TACHO_AGGREGATE", "app..*").run();
            assertNull(server.fault);
            assertEquals(20, aggregated(server.decoder(), "app.Work$Endless.after"));
            assertTrue(aggregated(server.decoder(), "app.Work$Endless.step") > 20_000);
            assertEquals(
                    20.0, series(server.decoder(), COUNT).get("app.Work$Endless.after()<(none)"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void nothingIsAllocated(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "allocation")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_AGGREGATE", "app..*")
                            .run();
            assertTrue(program.number("bytes") < 2_000, program.describe());
            assertEquals(0, server.decoder().callsEnded);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void methodsCalledTooOftenAreAggregated(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.rules(1);
            Program program =
                    program(server, jdk, "until-told", "4")
                            .with("TACHO_AGGREGATE_ABOVE", 3_000)
                            .start();
            assertTrue(server.awaitProbed(WAIT_S, probed -> !probed.moved().isEmpty()));
            assertTrue(server.await(WAIT_S, got -> aggregated(got, REQUEST + ".leaf") > 0));
            Probed.Moved moved = server.probed().moved().get(0);
            long now = System.currentTimeMillis();
            assertTrue(moved.operation().startsWith(REQUEST), moved.toString());
            assertTrue(moved.reason().matches("rate [0-9.]+( [kM])?/s over 3 k/s"), moved.reason());
            Map<String, Object> said =
                    Map.of("operation", moved.operation(), "reason", moved.reason());
            assertTrue(
                    server.await(
                            WAIT_S,
                            got -> got.declared.stream().anyMatch(record -> isMove(record, said))));
            assertTrue(Math.abs(moved.since() / 1_000_000 - now) < 60_000, moved.toString());
            assertTrue(server.probed().aggregated() > 0, server.probed().toString());
            server.rules(2, ProbeRule.on(REQUEST + ".leaf")); // a newer rule of a user
            assertTrue(
                    server.awaitProbed(
                            WAIT_S,
                            probed ->
                                    probed.revision() == 2
                                            && probed.moved().stream()
                                                    .noneMatch(
                                                            each ->
                                                                    each.operation()
                                                                            .contains("leaf"))),
                    () -> "the rule did not end the aggregation: " + server.probed());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            assertTrue(program.errors().contains("aggregated from now on: " + REQUEST + ".leaf()"));
            Decoder got = server.decoder();
            long requests = sum(program, "requests") + program.number("last");
            assertEquals(
                    6 * requests,
                    recorded(got.roots, REQUEST + ".leaf") + aggregated(got, REQUEST + ".leaf"));
        }
    }

    private static double last(Decoder got, String name, String label, String value) {
        return got.samples.stream()
                .filter(sample -> sample.name().equals(name))
                .filter(sample -> value.equals(sample.labels().getOrDefault(label, "")))
                .mapToDouble(sample -> sample.value().doubleValue())
                .reduce(-1, (before, now) -> now);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theOverheadIsReported(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.rules(1, ProbeRule.aggregate(REQUEST + ".leaf"));
            Program program =
                    program(server, jdk, "until-told", "2")
                            .with("TACHO_SAMPLERS", "true")
                            .with("TACHO_OVERHEAD_MAX", "90%")
                            .start();
            String total = "tacho_agent_overhead_seconds_total";
            assertTrue(
                    server.await(
                            WAIT_S,
                            got ->
                                    last(got, total, "operation", REQUEST + ".middle()") > 0
                                            && last(got, total, "operation", "(sender)") > 0),
                    program.describe());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            Decoder got = server.decoder();
            double ratio = last(got, "tacho_agent_overhead_ratio", "none", "");
            // On a busy machine the measured costs of a call may be too high.
            assertTrue(ratio > 0 && ratio < 5, "ratio " + ratio);
            double record = last(got, "tacho_agent_call_seconds", "mode", "record");
            double aggregate = last(got, "tacho_agent_call_seconds", "mode", "aggregate");
            System.out.printf("JDK %d: record %.3e s, aggregate %.3e s%n", jdk, record, aggregate);
            assertTrue(record > 1e-8 && record < 1e-4, "record " + record);
            assertTrue(aggregate > 1e-8 && aggregate < 1e-4, "aggregate " + aggregate);
            assertTrue(last(got, total, "operation", REQUEST + ".leaf()") > 0);
            assertEquals(0, last(got, "tacho_agent_moved_operations", "none", ""));
            assertEquals(List.of(), server.probed().moved());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theBudgetSwitchesOffAllMethodsThatAreCalled(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.rules(1);
            Program program =
                    program(server, jdk, "until-told", "4")
                            .with("TACHO_OVERHEAD_MAX", "0.0001%")
                            .start();
            assertTrue(
                    server.awaitProbed(
                            WAIT_S,
                            probed ->
                                    probed.moved().stream()
                                            .anyMatch(each -> each.operation().equals("(all)"))),
                    () -> server.probed() + " " + program.describe());
            program.say("end");
            program.finish();
            assertNull(server.fault);
            List<Probed.Moved> moved = server.probed().moved();
            assertEquals(4, moved.size(), moved.toString());
            assertTrue(
                    moved.stream()
                            .allMatch(
                                    each ->
                                            each.reason()
                                                    .matches("overhead [0-9.]+ % over 0.0001 %")),
                    moved.toString());
            assertTrue(
                    program.errors().contains("no method is left to switch off"),
                    program.describe());
            Decoder got = server.decoder();
            assertEquals(3, last(got, "tacho_agent_moved_operations", "none", ""));
            Probed probed = server.probed();
            assertEquals(
                    List.of(2L, 0L, 3L),
                    List.of(probed.on(), probed.aggregated(), probed.off()),
                    "open() and the constructor must stay on, because they are never called");
            assertTrue(program.errors().contains("switched off from now on: " + REQUEST));
            assertTrue(got.samples.stream().noneMatch(sample -> sample.name().equals(COUNT)));
            long requests = sum(program, "requests") + program.number("last");
            long recorded = recorded(got.roots, REQUEST + ".handle");
            assertTrue(
                    recorded > 0 && recorded <= requests - program.number("last"),
                    recorded + " of " + requests);
        }
    }
}
