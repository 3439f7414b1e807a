package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * If the token is missing, invalid or refused, the log has the reason, but never the token, and the
 * program continues. {@code crates/cli/tests/it/agent_token.rs} tests the same with the real server.
 */
class TokenIT {
    private static final String TOKEN = "tacho_5eC";
    private static final int CALLS = 10;

    @TempDir Path place;

    private static WireServer server() throws IOException {
        WireServer server = new WireServer();
        server.token = TOKEN;
        server.errorCode = 12;
        return server;
    }

    private static Program program(int jdk, WireServer server, String... arguments) {
        return Program.on(jdk, arguments)
                .with("TACHO_SERVER", server.address())
                .with("TACHO_FLUSH_MAX", "90s");
    }

    private static void awaitError(Program program, String text) throws Exception {
        long until = System.nanoTime() + 60_000_000_000L;
        while (!program.errors().contains(text)) {
            assertTrue(System.nanoTime() < until, () -> "no line with \"" + text + "\": " + program.describe());
            Thread.sleep(20);
        }
    }

    private static void assertSecret(Program program) throws IOException {
        assertFalse(program.errors().contains("5eC"), program.describe());
        assertFalse(program.output().contains("5eC"), program.describe());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aProgramWithTheTokenRecords(int jdk) throws Exception {
        Path file = Files.writeString(place.resolve("token"), TOKEN + "\n");
        for (String setting : new String[] {"TACHO_TOKEN", "TACHO_TOKEN_FILE"}) {
            try (WireServer server = server()) {
                Program program = program(jdk, server, "burst", "1000");
                program.with(setting, setting.equals("TACHO_TOKEN") ? TOKEN : file);
                program.with("TACHO_LOG_DETAIL", "true").run();
                assertNull(server.fault, () -> "the server found a fault: " + server.fault);
                assertEquals(1000L * CALLS, server.decoder().callsEnded, program.describe());
                assertSecret(program);
            }
        }
    }

    @ParameterizedTest
    @CsvSource(
            nullValues = "-",
            value = {
                "-, 12, the server requires a token: set token_file or token (error 12)",
                "tacho_5eCother, 12, the server refuses the token: unknown token (error 12); put a",
                "tacho_5eCother, 13, the token does not permit this: unknown token (error 13); change its role or selector",
            })
    void aMissingOrRefusedTokenIsReportedOnce(String token, int code, String expected)
            throws Exception {
        try (WireServer server = server()) {
            server.errorCode = code;
            Program program = program(17, server, "until-told", "1");
            if (token != null) {
                program.with("TACHO_TOKEN", token);
            }
            program.with("TACHO_FLUSH_MAX", "1500ms").start();
            awaitError(program, expected);
            // The agent keeps trying.
            assertTrue(server.await(60, got -> server.connections >= 3), program.describe());
            program.say("end");
            program.finish();
            long lines = program.errors().lines().filter(line -> line.contains("(error")).count();
            assertEquals(1, lines, program.describe());
            assertEquals(0, server.dataBytes);
            assertSecret(program);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aTokenThatIsReplacedInItsFileIsUsedAtTheNextConnection(int jdk) throws Exception {
        Path file = place.resolve("token");
        try (WireServer server = server()) {
            Program program = program(jdk, server, "until-told", "1").with("TACHO_TOKEN_FILE", file);
            program.start();
            awaitError(program, "token_file=" + file + ": no such file; the program goes on");
            assertEquals(0, server.connections, "the agent has connected although the file is missing");
            Files.writeString(file, TOKEN);
            awaitError(program, "connected to");
            server.token = "next";
            server.refuse("token revoked");
            awaitError(program, "lost the server " + server.address() + ": the server refuses");
            Files.writeString(file, "next");
            awaitError(program, "connected again to");
            assertEquals("next", server.presented);
            assertSecret(program);
            program.kill();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {" ", "tacho_5eC ", "tacho 5eC", "tacho_5eC\n", "\u00e4"})
    void theLogStatesThatAValueIsNotAToken(String token) throws Exception {
        try (WireServer server = server()) {
            Program program = program(17, server, "burst", "1000");
            program.with("TACHO_TOKEN", token).with("LC_ALL", "C.UTF-8").run();
            String expected = "token: a token has 1 to 256 visible ASCII characters, no blanks";
            assertTrue(program.errors().contains(expected), program.describe());
            assertEquals(0, server.connections);
            assertSecret(program);
        }
    }

    @Test
    void aTokenInAnInvalidLineOfTheSettingsIsNotLogged() throws Exception {
        Path file = Files.writeString(place.resolve("agent.toml"), "token = tacho_5eC\n");
        try (WireServer server = server()) {
            Program program = program(17, server, "burst", "1000").config(file.toString()).run();
            assertTrue(program.errors().contains("line 1, token: text must be in quotes"));
            assertEquals(0, server.connections, program.describe());
            assertSecret(program);
        }
    }
}
