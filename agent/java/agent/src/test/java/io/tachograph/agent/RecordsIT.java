package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Declared;
import io.tachograph.testing.Decoder;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Declared records in real JVMs. */
class RecordsIT {
    private static final Path API = Path.of("../api/target/classes");

    private static Program program(int jdk, WireServer server, String... arguments) {
        List<String> all = new ArrayList<>(List.of("records"));
        all.addAll(List.of(arguments));
        return Program.on(jdk, all.toArray(new String[0]))
                .classes(API)
                .with("TACHO_SERVER", server.address())
                .with("TACHO_INCLUDE", "app.Events$Shop.*, app.Events_*")
                .with("TACHO_EXCLUDE", "")
                .with("TACHO_FLUSH_MAX", "30s");
    }

    private static void assertNoFault(WireServer server) {
        assertNull(server.fault, () -> "the server found a fault: " + server.fault);
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void valuesOfEveryTypeArrive(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(jdk, server, "every").with("TACHO_SERVICE", "shop").run();
            assertNoFault(server);
            List<Declared> got = server.decoder().declared;
            Map<String, Object> first = new LinkedHashMap<>();
            first.put("truth", true);
            first.put("tiny", 127L);
            first.put("small", 32_767L);
            first.put("middle", (long) Integer.MAX_VALUE);
            first.put("great", Long.MAX_VALUE);
            first.put("rough", 0.1f);
            first.put("fine", Double.MIN_VALUE);
            first.put("text", "x".repeat(4_093) + "…");
            first.put("chars", "größe 漢字 🚀");
            first.put("color", "GREEN");
            first.put("id", UUID.fromString("0123e456-7890-abcd-ef01-234567890abc"));
            first.put("at", 1_709_251_199_999_999_999L);
            first.put("took", 1_500_000_000L);
            assertEquals(first, got.get(0).values());
            assertEquals(List.copyOf(first.keySet()), List.copyOf(got.get(0).values().keySet()));
            Map<String, Object> second = new LinkedHashMap<>(first);
            second.putAll(
                    Map.of(
                            "truth",
                            false,
                            "tiny",
                            -128L,
                            "small",
                            -32_768L,
                            "middle",
                            (long) Integer.MIN_VALUE,
                            "great",
                            Long.MIN_VALUE,
                            "rough",
                            Float.NEGATIVE_INFINITY,
                            "fine",
                            Double.NaN));
            for (String name : List.of("text", "chars", "color", "id")) {
                second.put(name, null);
            }
            second.put("at", Long.MAX_VALUE);
            second.put("took", -999_999_999L);
            assertEquals(second, got.get(1).values());
            assertEquals(Map.of(), got.get(2).values());
            assertEquals(Map.of("cart", 17L, "total", 9.5), got.get(3).values());
            assertEquals(Map.of("cart", 18L, "total", -0.0), got.get(4).values());
            assertEquals(5, got.size(), "records with a value that throws must not arrive");
            assertNamed(got);
            assertEquals(4, server.entriesDropped, "each dropped record must be counted");
            assertLoggedOnce(program, "app_every", IllegalStateException.class);
            assertLoggedOnce(program, "fragile", UnsupportedOperationException.class);
        }
    }

    private static void assertLoggedOnce(Program program, String type, Class<?> thrown)
            throws Exception {
        String line =
                "a record of "
                        + type
                        + " is dropped (later faults of this type are not logged): "
                        + thrown.getName()
                        + " while";
        long lines = program.errors().lines().filter(each -> each.contains(line)).count();
        assertEquals(1, lines, program.describe());
    }

    private static void assertNamed(List<Declared> got) {
        List<String> names = got.stream().map(record -> record.type().name()).toList();
        assertEquals(
                List.of("app_every", "app_every", "app_none", "cart_emptied", "cart_emptied"),
                names);
        for (Declared record : got) {
            assertEquals("shop", record.labels().get("service"));
            assertEquals(record.type().name(), record.labels().get("__name__"));
            assertTrue(record.labels().containsKey("host"));
        }
        Map<String, String> units = new HashMap<>();
        got.get(0).type().fields().forEach(field -> units.put(field.name(), field.unit()));
        assertEquals("m/s", units.get("fine"));
        assertEquals("ns", units.get("took"));
        assertEquals("", units.get("great"));
        assertEquals("EUR", got.get(3).type().fields().get(1).unit());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsOfManyThreadsArriveInsideAndOutsideOfCalls(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            program(jdk, server, "threads", "8").run();
            assertComplete(server, 8, 500);
        }
    }

    @Test
    void recordsOfVirtualThreadsArrive() throws Exception {
        try (WireServer server = new WireServer()) {
            program(25, server, "virtual", "2000").run();
            Decoder got = server.decoder();
            assertNoFault(server);
            assertEquals(6_000, got.declared.size() + server.entriesDropped);
            // The rings of virtual threads hold at least this many records between two passes of
            // the sender.
            assertTrue(got.declared.size() > 500, "received " + got.declared.size());
        }
    }

    /**
     * Each thread's records have arrived in order, and records inside calls have the ids of the
     * call.
     */
    private static void assertComplete(WireServer server, int threads, int records) {
        assertNoFault(server);
        Decoder got = server.decoder();
        Map<String, Call> calls = new HashMap<>();
        got.roots.forEach(root -> calls.put(root.span, root));
        Map<Object, Long> next = new HashMap<>();
        for (Declared record : got.declared) {
            long number = (long) record.values().get("number");
            assertEquals(next.getOrDefault(record.values().get("thread"), 0L), number);
            next.put(record.values().get("thread"), number + 1);
            assertEquals(number % 2 == 0 ? "ada" : "bob", record.values().get("customer"));
            if (number % 2 == 0) {
                Call call = calls.remove(record.span());
                assertEquals(call.traceId, record.trace());
                assertTrue(record.at() >= call.start && record.at() <= call.end);
            } else {
                assertNull(record.span());
            }
        }
        assertEquals(threads * records, got.declared.size());
        assertTrue(calls.isEmpty(), "calls without a record: " + calls.keySet());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsThatDoNotFitAreDroppedAndCounted(int jdk) throws Exception {
        int count = 300_000;
        try (WireServer server = new WireServer()) {
            program(jdk, server, "burst", "" + count).with("TACHO_BUFFER", 256).run();
            assertNoFault(server);
            assertEquals(count, server.decoder().declared.size() + server.entriesDropped);
            assertTrue(server.entriesDropped > 0, "nothing was dropped, although a ring of 256 words cannot hold all");
        }
    }

    @Test
    void aServerWithoutSupportGetsNoDeclaredRecords() throws Exception {
        try (WireServer server = new WireServer()) {
            server.isOld = true;
            program(17, server, "threads", "2").run();
            assertNoFault(server);
            assertEquals(500, server.decoder().roots.size());
            assertEquals(0, server.decoder().declared.size());
            assertEquals(1_000, server.entriesDropped);
            assertEquals(1, server.connections);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsBeginWhenAnAgentIsAttached(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program bare = program(jdk, server, "every").bare().run();
            assertEquals("", bare.errors());
            Program program =
                    program(jdk, server, "until-told")
                            .option("-XX:+EnableDynamicAgentLoading")
                            .bare()
                            .start();
            try {
                program.awaitOutput("ready", 90);
                Thread.sleep(200);
                assertEquals(0, server.connections);
                program.attach("");
                assertTrue(server.await(60, got -> got.declared.size() > 50), program.describe());
                program.say("end");
                program.finish();
            } finally {
                program.kill();
            }
            assertNoFault(server);
            assertTrue((long) server.decoder().declared.get(0).values().get("number") > 0);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void nothingIsAllocated(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(jdk, server, "allocation").run();
            // Reading the counter may itself allocate a few bytes.
            assertTrue(program.number("bytes") < 2_000, program.describe());
        }
    }
}
