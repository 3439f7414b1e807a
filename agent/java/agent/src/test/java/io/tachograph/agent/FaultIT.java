package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Faults of the server and wrong settings do not change the program. The agent logs each fault
 * once.
 */
class FaultIT {
    /** Number of calls in one request of the program. */
    private static final int CALLS = 10;

    /**
     * Limit on the run time of a program that the agent must not delay, ms; far above the time that
     * the program needs on two busy cores.
     */
    private static final long MILLIS_MAX = 60_000;

    /**
     * Limit on the time from SIGTERM to the end of the program, ms. The program sleeps for 600 s,
     * and {@link Program#terminate} kills it after 120 s.
     */
    private static final long SIGTERM_MILLIS_MAX = 100_000;

    private static void assertOneLine(Program program, String text) throws IOException {
        long lines = program.errors().lines().filter(line -> line.contains(text)).count();
        assertEquals(1, lines, program.describe());
        assertTrue(linesWithoutDrops(program) <= 3, program.describe());
    }

    /** Number of log lines, without those about dropped calls, which depend on the load. */
    private static long linesWithoutDrops(Program program) throws IOException {
        String dropped = "calls were dropped so far";
        return program.errors().lines().filter(line -> !line.contains(dropped)).count();
    }

    private static void awaitConnection(WireServer server) throws InterruptedException {
        for (int tries = 0; tries < 1_000 && server.connections == 0; tries++) {
            Thread.sleep(20);
        }
    }

    /** Waits until each call has arrived or is counted as dropped. */
    private static void awaitCounts(WireServer server, Program program) throws Exception {
        long expected = program.number("count") * CALLS;
        assertTrue(
                server.await(60, got -> got.callsEnded + server.executionsDropped == expected),
                program.describe());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aProgramRunsWithoutAServer(int jdk) throws Exception {
        int port;
        try (WireServer gone = new WireServer()) {
            port = gone.port();
        }
        Program program =
                Program.on(jdk, "burst", "300000").with("TACHO_SERVER", "127.0.0.1:" + port).run();
        assertOneLine(program, "cannot reach the server 127.0.0.1:" + port);
        assertTrue(program.millis() < MILLIS_MAX, program.describe());
    }

    @ParameterizedTest
    @CsvSource({"17, CLOSING_ONCE", "25, CLOSING_ONCE", "17, HANGING_ONCE"})
    void anEndingProgramConnectsAgainAfterAFailedConnection(int jdk, WireServer.Mode first)
            throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = first;
            Program program =
                    Program.on(jdk, "burst", "1000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(1_000L * CALLS, server.decoder().callsEnded, program.describe());
            assertEquals(2, server.connections, program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theAgentConnectsToAServerThatStartsLater(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.stop();
            Program program =
                    Program.on(jdk, "loop", "4", "5")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .start();
            Thread.sleep(1_500);
            server.start();
            program.finish();
            awaitCounts(server, program);
            assertNull(server.fault);
            assertEquals(0, server.executionsDropped);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theAgentReconnectsAfterTheServerFails(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "loop", "5", "2")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .start();
            for (int death = 0; death < 2; death++) {
                assertTrue(server.await(60, got -> got.callsEnded > 0), program.describe());
                Thread.sleep(700);
                server.stop();
                Thread.sleep(400);
                server.start();
            }
            program.finish();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(
                    program.number("count") * CALLS,
                    server.decoder().callsEnded,
                    program.describe());
            assertEquals(0, server.decoder().gaps);
            assertTrue(server.connections >= 3);
            List<String> told =
                    program.errors()
                            .lines()
                            .filter(line -> line.contains("Z tachograph: "))
                            .map(line -> line.replaceFirst(".*Z tachograph: ", ""))
                            .toList();
            String address = server.address();
            assertEquals(4, told.size(), program.describe());
            assertEquals("connected to " + address, told.get(0));
            assertTrue(told.get(1).startsWith("lost the server " + address), program.describe());
            assertTrue(told.get(2).startsWith("connected again to " + address), program.describe());
            assertTrue(
                    told.get(2).endsWith(" s; nothing was dropped in the meantime"),
                    program.describe());
            assertEquals(
                    "connected to "
                            + address
                            + " again; the connection failed once since the last message about"
                            + " it; nothing was dropped in the meantime",
                    told.get(3),
                    "the second outage must be logged when the program ends");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aServerThatNeverReadsDoesNotDelayTheProgram(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.DEAF;
            Program program =
                    Program.on(jdk, "burst", "1000000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_QUEUE", "1MiB")
                            .run();
            assertTrue(program.number("ms") < MILLIS_MAX, program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsDroppedByAFullQueueAreCounted(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.SILENT;
            Program program =
                    Program.on(jdk, "burst", "300000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "20s")
                            .with("TACHO_QUEUE", "1MiB")
                            .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(
                    300_000L * CALLS,
                    server.decoder().callsEnded + server.executionsDropped,
                    program.describe());
            assertTrue(server.executionsDropped > 0);
            for (Call root : server.decoder().roots) {
                assertTrue(root.size() <= CALLS && root.end != null);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aSmallRingDropsWholeCalls(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "burst", "300000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "30s")
                            .with("TACHO_BUFFER", 256)
                            .run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(
                    300_000L * CALLS,
                    server.decoder().callsEnded + server.executionsDropped,
                    program.describe());
            assertTrue(server.executionsDropped > 0);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void blockDropsNoCall(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "burst", "100000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "30s")
                            .with("TACHO_BUFFER", 1_024)
                            .with("TACHO_WHEN_FULL", "block")
                            .with("TACHO_BLOCK_MAX", "10s")
                            .run();
            assertNull(server.fault);
            assertEquals(100_000L * CALLS, server.decoder().callsEnded, program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void blockEndsAtItsLimit(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.SILENT;
            Program program =
                    Program.on(jdk, "burst", "300000")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_QUEUE", "256KiB")
                            .with("TACHO_WHEN_FULL", "block")
                            .with("TACHO_BLOCK_MAX", "200ms")
                            .run();
            assertTrue(program.number("ms") < MILLIS_MAX, program.describe());
            assertTrue(program.number("ms") >= 200, program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void invalidBytesFromTheServerAreLogged(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.GARBAGE;
            Program program =
                    Program.on(jdk, "loop", "3", "5")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .start();
            awaitConnection(server);
            Thread.sleep(500);
            server.mode = WireServer.Mode.GOOD;
            program.finish();
            assertOneLine(program, "not the agent port of a tacho server");
            assertEquals(
                    program.number("count") * CALLS,
                    server.decoder().callsEnded,
                    program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void afterALastingErrorTheAgentDoesNotRetryAtOnce(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.REFUSING;
            server.errorCode = 2;
            Program program =
                    Program.on(jdk, "loop", "3", "5")
                            .with("TACHO_SERVER", server.address())
                            .start();
            program.finish();
            assertEquals(1, server.connections,
                    "without a common version the agent must not retry at once");
            assertOneLine(program, "error 2");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aRefusedFrameIsCountedAndNotSentAgain(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.REFUSING_DATA;
            server.errorCode = 5;
            Program program =
                    Program.on(jdk, "loop", "4", "5")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .start();
            program.finish();
            awaitCounts(server, program);
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertOneLine(program, "error 5");
            assertTrue(server.executionsDropped > 0);
            Pattern told =
                    Pattern.compile(
                            "connected again to .* s; [1-9][0-9]* calls, [0-9]+ samples and"
                                    + " [0-9]+ entries were dropped");
            assertTrue(told.matcher(program.errors()).find(), program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theAgentWaitsForAServerThatSendsWait(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.WAITING;
            server.heartbeatMs = 300;
            Program program =
                    Program.on(jdk, "loop", "4", "5")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "60s")
                            .start();
            program.finish();
            assertEquals(1, server.connections, program.describe());
            assertEquals(
                    program.number("count") * CALLS,
                    server.decoder().callsEnded,
                    program.describe());
        }
    }

    @ParameterizedTest
    @CsvSource(
            nullValues = "-",
            value = {
                "TACHO_SERVER, no-such-host.invalid:7071, -",
                "TACHO_SERVER, 127.0.0.1:x, expected host:port; using 127.0.0.1:7071",
                "TACHO_SERVER, http://127.0.0.1:7071, expected host:port; using 127.0.0.1:7071",
                "TACHO_SERVER, 256.1.1.1:99999, expected host:port; using 127.0.0.1:7071",
                "TACHO_SERVER, [::1, expected host:port; using 127.0.0.1:7071",
                "TACHO_SERVER, '', expected host:port; using 127.0.0.1:7071",
                "TACHO_BUFFER, 1000, a power of two is needed; using 1024",
                "TACHO_PROBES, nosuch, 'expected * or names, each with or without a leading -; '",
                "TACHO_PROBES, 'methods,jdcb', '; using methods'",
            })
    void wrongValuesAreLogged(String variable, String value, String expected) throws Exception {
        Program program = Program.on(17, "burst", "1000").with(variable, value).run();
        assertTrue(program.errors().lines().count() >= 1, program.describe());
        assertTrue(linesWithoutDrops(program) <= 3, program.describe());
        if (expected != null) {
            assertTrue(
                    program.errors()
                            .lines()
                            .anyMatch(
                                    line ->
                                            line.contains(
                                                            " tachograph: "
                                                                    + variable
                                                                    + "="
                                                                    + value
                                                                    + ": ")
                                                    && line.contains(expected)),
                    program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void faultsOfAConfigurationFileAreLogged(int jdk) throws Exception {
        Path file = Files.createTempFile("tacho", ".toml");
        Files.writeString(
                file,
                """
                # a comment
                servise = "shop"
                server = 127.0.0.1
                [table]
                include = [ "app.Work$Request.*",
                    'app.Nothing' ] # two
                queue = "many"
                block_max = "1 s"
                log = "/no/such/folder/agent.log"
                """);
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "burst", "10")
                            .config(file.toString())
                            .with("TACHO_SERVER", server.address())
                            .run();
            String errors = program.errors();
            assertTrue(
                    errors.contains("servise: there is no such setting, did you mean service?"),
                    errors);
            assertTrue(
                    errors.contains("line 3, server: text must be in quotes"), errors);
            assertTrue(errors.contains("line 4: tables are not supported"), errors);
            assertTrue(
                    errors.contains("queue=many: expected a size such as 16MiB; using 16MiB"),
                    errors);
            assertTrue(errors.contains("cannot write the log /no/such/folder/agent.log"), errors);
            assertEquals(10 * CALLS, server.decoder().callsEnded);
        }
        Program missing = Program.on(jdk, "burst", "10").config("/no/such/file.toml").run();
        assertTrue(
                missing.errors().contains("cannot read the configuration /no/such/file.toml"),
                missing.errors());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void sigtermSendsTheRemainingRecords(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(jdk, "sleep", "600").with("TACHO_SERVER", server.address()).start();
            program.awaitOutput("ready", 90);
            assertTrue(server.await(60, got -> got.callsEnded >= CALLS), program.describe());
            long ms = program.terminate();
            assertTrue(ms < SIGTERM_MILLIS_MAX, "SIGTERM took " + ms + " ms");
            assertNull(server.fault);
            Call open = server.decoder().roots.get(server.decoder().roots.size() - 1);
            assertEquals("app.Work$Request.open(int)?(app.Work$Request.leaf())", open.shape());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void sigtermEndsAProgramWhoseServerDoesNotAnswer(int jdk) throws Exception {
        for (WireServer.Mode mode :
                new WireServer.Mode[] {WireServer.Mode.SILENT, WireServer.Mode.DEAF, null}) {
            try (WireServer server = new WireServer()) {
                if (mode == null) {
                    server.stop();
                } else {
                    server.mode = mode;
                }
                Program program =
                        Program.on(jdk, "sleep", "600")
                                .with("TACHO_SERVER", server.address())
                                .start();
                program.awaitOutput("ready", 90);
                Thread.sleep(500);
                long ms = program.terminate();
                assertTrue(ms < SIGTERM_MILLIS_MAX, "SIGTERM took " + ms + " ms with " + mode);
            }
        }
    }
}
