package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Authority;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;

/**
 * If the settings cannot be used, or if agent and server do not accept each other, the agent sends
 * no frame and logs the cause. {@code crates/cli/tests/it/tls.rs} tests the same with the real server.
 */
class TlsIT {
    private static final String NAMES = "IP:127.0.0.1,DNS:localhost";
    private static final int CALLS = 10;

    @TempDir static Path place;

    private static Authority ours;
    private static Authority other;
    private static Authority.Pair server;
    private static Authority.Pair client;
    private static Authority.Pair foreign;

    @BeforeAll
    static void makeCertificates() throws Exception {
        ours = new Authority(place, "ours");
        other = new Authority(place, "other");
        server = ours.sign("server", NAMES);
        client = ours.sign("client", NAMES);
        foreign = other.sign("foreign", NAMES);
        ours.sign("locked", NAMES, "-passout", "pass:secret");
        Files.writeString(place.resolve("text"), "no PEM");
        Files.writeString(
                place.resolve("damaged"),
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        String fifo = place.resolve("fifo").toString();
        assertEquals(0, new ProcessBuilder("mkfifo", fifo).start().waitFor());
        String key = client.key().toString();
        String old = place.resolve("old.key.pem").toString();
        Authority.openssl(List.of("ec", "-in", key, "-out", old));
    }

    private static WireServer secured() throws IOException {
        return new WireServer(ours.context(server), false);
    }

    private static WireServer strict() throws IOException {
        return new WireServer(ours.context(server), true);
    }

    private static Program program(int jdk, String address, Path ca) {
        return Program.on(jdk, "burst", "1000")
                .with("TACHO_SERVER", address)
                .with("TACHO_TLS_CA", ca)
                .with("TACHO_FLUSH_MAX", "60s");
    }

    private static Program showing(Program program, Authority.Pair pair) {
        return program.with("TACHO_TLS_CLIENT_CERT", pair.cert())
                .with("TACHO_TLS_CLIENT_KEY", pair.key());
    }

    private static void succeeds(WireServer server, Program program) throws Exception {
        program.run();
        assertNull(server.fault, () -> "the server found a fault: " + server.fault);
        assertEquals(1000L * CALLS, server.decoder().callsEnded, program.describe());
    }

    /**
     * Checks that the first line of the log about the server contains {@code expected}, and that
     * the server received no frame.
     */
    private static void fails(WireServer server, Program program, String expected)
            throws Exception {
        program.run();
        List<String> lines =
                program.errors().lines().filter(line -> line.contains("the server ")).toList();
        assertTrue(
                lines.size() >= 1 && lines.get(0).contains(expected),
                () -> "the first line about the server lacks \"" + expected + "\": " + program.describe());
        assertTrue(lines.get(0).endsWith("; the program goes on, the agent keeps trying"));
        assertEquals(0, server.allBytes, program.describe());
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsArriveOverTls(int jdk) throws Exception {
        try (WireServer server = secured()) {
            succeeds(server, program(jdk, server.address(), ours.file));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"CLOSING_ONCE", "HANGING_ONCE"})
    void recordsArriveAfterAConnectionWithoutAHandshake(WireServer.Mode first) throws Exception {
        try (WireServer server = secured()) {
            server.mode = first;
            Program program = program(17, server.address(), ours.file);
            succeeds(server, program);
            assertEquals(2, server.connections, program.describe());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void recordsArriveWithAClientCertificate(int jdk) throws Exception {
        try (WireServer server = strict()) {
            succeeds(server, showing(program(jdk, server.address(), ours.file), client));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rsa:2048", "ed25519"})
    void keysOfOtherAlgorithmsAreUsed(String algorithm) throws Exception {
        String name = algorithm.replace(':', '-');
        Authority.Pair pair = ours.sign(name, NAMES, "-nodes", "-newkey", algorithm);
        try (WireServer server = strict()) {
            succeeds(server, showing(program(17, server.address(), ours.file), pair));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"TLSv1.2", "TLSv1.3"})
    void everyCallArrivesWithEitherVersionOfTls(String version) throws Exception {
        try (WireServer server = strict()) {
            Program program =
                    Program.on(17, "threads", "8", "2000")
                            .option("-Djdk.tls.client.protocols=" + version)
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_TLS_CA", ours.file)
                            .with("TACHO_BUFFER", 1 << 20)
                            .with("TACHO_FLUSH_MAX", "120s");
            showing(program, client).run();
            assertNull(server.fault, () -> "the server found a fault: " + server.fault);
            assertEquals(0, server.executionsDropped);
            assertEquals(8 * 2000 * 10, server.decoder().callsEnded, program.describe());
        }
    }

    @Test
    void theAuthoritiesOfTheJvmAreUsed() throws Exception {
        Path store = place.resolve("trusted.p12");
        Path java = Path.of(System.getProperty("java.home"), "bin", "keytool");
        List<String> command =
                List.of(
                        java.toString(),
                        "-importcert",
                        "-noprompt",
                        "-file",
                        ours.file.toString(),
                        "-keystore",
                        store.toString(),
                        "-storetype",
                        "PKCS12",
                        "-storepass",
                        "secret");
        assertEquals(0, new ProcessBuilder(command).start().waitFor());
        try (WireServer server = secured()) {
            Program program =
                    program(17, server.address(), Path.of("system"))
                            .option("-Djavax.net.ssl.trustStore=" + store)
                            .option("-Djavax.net.ssl.trustStorePassword=secret");
            succeeds(server, program);
        }
    }

    @Test
    void aRenewedClientCertificateIsUsedAtTheNextConnection() throws Exception {
        Authority.Pair pair =
                new Authority.Pair(place.resolve("renewed.cert"), place.resolve("renewed.key"));
        put(foreign, pair);
        try (WireServer server = strict()) {
            Program program =
                    Program.on(17, "until-told", "1")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_TLS_CA", ours.file);
            showing(program, pair).start();
            awaitError(program, "the server refuses the certificate in tls_client_cert");
            put(client, pair);
            awaitError(program, "connected to");
            program.kill();
        }
    }

    private static void put(Authority.Pair from, Authority.Pair to) throws IOException {
        Files.copy(from.key(), to.key(), StandardCopyOption.REPLACE_EXISTING);
        Files.copy(from.cert(), to.cert(), StandardCopyOption.REPLACE_EXISTING);
    }

    private static void awaitError(Program program, String text) throws Exception {
        long until = System.nanoTime() + 60_000_000_000L;
        while (!program.errors().contains(text)) {
            assertTrue(System.nanoTime() < until, () -> "no line with \"" + text + "\": " + program.describe());
            Thread.sleep(20);
        }
    }

    @ParameterizedTest
    @CsvSource({"17, other.pem", "25, other.pem", "17, system"})
    void aServerOfAnotherAuthorityIsNotTrusted(int jdk, String ca) throws Exception {
        try (WireServer server = secured()) {
            Path path = ca.equals("system") ? Path.of(ca) : place.resolve(ca);
            String expected = "no authority of tls_ca has signed the server's certificate";
            fails(server, program(jdk, server.address(), path), expected);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void theNameInTheCertificateMustEqualTheSetting(int jdk) throws Exception {
        Authority.Pair named = ours.sign("named", "DNS:localhost");
        try (WireServer server = new WireServer(ours.context(named), false)) {
            String expected = "the server's certificate is not for 127.0.0.1";
            fails(server, program(jdk, server.address(), ours.file), expected);
            succeeds(server, program(jdk, "localhost:" + server.port(), ours.file));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aServerThatRequiresAClientCertificateIsLogged(int jdk) throws Exception {
        try (WireServer server = strict()) {
            Program bare = program(jdk, server.address(), ours.file);
            fails(server, bare, "the server requires a client certificate: set tls_client_cert");
            Program wrong = showing(program(jdk, server.address(), ours.file), foreign);
            fails(server, wrong, "the server refuses the certificate in tls_client_cert");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void aServerWithoutTlsGetsNoRecords(int jdk) throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.REFUSING;
            String expected = "the server does not use TLS, but tls_ca is set";
            fails(server, program(jdk, server.address(), ours.file), expected);
        }
    }

    @Test
    void aServerThatRequiresTlsIsLogged() throws Exception {
        try (WireServer server = new WireServer()) {
            server.mode = WireServer.Mode.REFUSING;
            server.errorCode = 11;
            Program program =
                    Program.on(17, "burst", "1000").with("TACHO_SERVER", server.address());
            fails(server, program, "the server requires TLS: set tls_ca (error 11)");
        }
    }

    /** The server has no TLS, so an unencrypted connection would succeed. */
    @ParameterizedTest
    @CsvSource(
            nullValues = "-",
            value = {
                "tls_ca, missing, -, -, no such file",
                "tls_ca, text, -, -, it holds no certificate in PEM",
                "tls_ca, damaged, -, -, ''",
                "tls_ca, '', -, -, ''",
                "tls_ca, fifo, -, -, it is not a regular file",
                "tls_client_cert, ours.pem, missing, client.key.pem, no such file",
                "tls_client_cert, ours.pem, text, client.key.pem, it holds no certificate in PEM",
                "tls_client_cert, ours.pem, damaged, client.key.pem, ''",
                "tls_client_key, ours.pem, client.cert.pem, missing, no such file",
                "tls_client_key, ours.pem, client.cert.pem, text, it holds no private key in PEM",
                "tls_client_key, ours.pem, client.cert.pem, old.key.pem, the key is not PKCS #8",
                "tls_client_key, ours.pem, locked.cert.pem, locked.key.pem, the key is encrypted",
                "tls_client_key, ours.pem, client.cert.pem, foreign.key.pem,"
                        + " it is not the key of the certificate in tls_client_cert",
            })
    void unusableFilesAreLogged(String setting, String ca, String cert, String key, String why)
            throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(17, server.address(), place.resolve(ca));
            if (cert != null) {
                Authority.Pair pair = new Authority.Pair(place.resolve(cert), place.resolve(key));
                showing(program, pair);
            }
            String file =
                    switch (setting) {
                        case "tls_ca" -> ca;
                        case "tls_client_cert" -> cert;
                        default -> key;
                    };
            fails(server, program, setting + "=" + place.resolve(file) + ": " + why);
        }
    }

    @Test
    void incompleteSettingsAreLogged() throws Exception {
        try (WireServer server = new WireServer()) {
            Program half = program(17, server.address(), ours.file);
            half.with("TACHO_TLS_CLIENT_CERT", client.cert());
            fails(server, half, "tls_client_cert is set without tls_client_key");
            Program otherHalf = program(17, server.address(), ours.file);
            otherHalf.with("TACHO_TLS_CLIENT_KEY", client.key());
            fails(server, otherHalf, "tls_client_key is set without tls_client_cert");
            Program useless = program(17, server.address(), Path.of(""));
            succeeds(server, useless.with("TACHO_TLS_CLIENT_CERT", client.cert()));
            String expected = "tls_client_cert has no effect without tls_ca";
            assertTrue(useless.errors().contains(expected), useless.describe());
        }
    }

    @Test
    void withoutTheSettingTheClassesOfTlsAreNotLoaded() throws Exception {
        try (WireServer server = new WireServer()) {
            Program program = program(17, server.address(), Path.of(""));
            succeeds(server, program.option("-verbose:class"));
            assertFalse(program.output().contains("javax.net.ssl."));
            assertFalse(program.output().contains("core.send.Tls"));
        }
    }
}
