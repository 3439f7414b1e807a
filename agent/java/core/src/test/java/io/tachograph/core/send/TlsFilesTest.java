package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.tachograph.core.log.Messages;
import io.tachograph.testing.Authority;
import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.KeyStore;
import java.security.Provider;
import java.security.Security;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.List;

import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactorySpi;
import javax.net.ssl.ManagerFactoryParameters;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactorySpi;
import javax.net.ssl.X509TrustManager;

/**
 * Even if the program trusts every server by default, the agent trusts only the authorities in its
 * settings.
 */
class TlsFilesTest {
    private static final String TRUST = "ssl.TrustManagerFactory.algorithm";
    private static final String KEYS = "ssl.KeyManagerFactory.algorithm";
    private static final String NAMES = "IP:127.0.0.1";

    @TempDir Path place;

    private final String trustBefore = Security.getProperty(TRUST);
    private final String keysBefore = Security.getProperty(KEYS);

    private Authority ours;
    private Authority other;
    private Authority.Pair client;
    private SSLContext context;

    @BeforeEach
    void trustAll() throws IOException {
        ours = new Authority(place, "ours");
        other = new Authority(place, "other");
        client = ours.sign("client", NAMES);
        // Made before the provider is inserted: the server needs the key manager of the JDK.
        context = ours.context(ours.sign("server", NAMES));
        Security.insertProviderAt(new TrustingProvider(), 1);
    }

    @AfterEach
    void undo() {
        Security.removeProvider(TrustingProvider.NAME);
        Security.setProperty(TRUST, trustBefore);
        Security.setProperty(KEYS, keysBefore);
    }

    @Test
    void theDefaultAlgorithmsOfTheProgramAreNotUsed() throws Exception {
        Security.setProperty(TRUST, "TrustAll");
        Security.setProperty(KEYS, "NoKeys");
        connects();
    }

    @Test
    void theFirstProviderOfTheProgramIsNotUsed() throws Exception {
        connects();
    }

    @Test
    void theWordEncryptedInACommentDoesNotMeanAnEncryptedKey() throws Exception {
        String plain = Files.readString(client.key());
        for (String comment : List.of("# not ENCRYPTED\n", "Bag Attributes: ENCRYPTED\r\n")) {
            Files.writeString(client.key(), comment + plain);
            assertNotNull(files(client.cert(), client.key()).context());
        }
    }

    @Test
    void encryptedKeysAreRefused() throws Exception {
        Authority.Pair locked = ours.sign("locked", NAMES, "-passout", "pass:test");
        Path old = place.resolve("old.key.pem");
        String header = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
        Files.writeString(old, header + "DEK-Info: AES-256-CBC,00\n\nAAAA\n");
        for (Path key : List.of(locked.key(), old)) {
            fails(files(client.cert(), key), "tls_client_key", key, Messages.TLS_KEY_ENCRYPTED);
        }
    }

    @Test
    void aPkcs12FileIsRefusedWithTheCommandThatConvertsIt() throws Exception {
        ours.context(client); // writes the file
        Path store = place.resolve(client.cert().getFileName() + ".p12");
        String remedy = "; convert a PKCS #12 file: openssl pkcs12 -nodes -in " + store;
        String noCertificate = Messages.TLS_NO_CERTIFICATE + remedy;
        fails(files(store, store), "tls_client_cert", store, noCertificate);
        fails(files(client.cert(), store), "tls_client_key", store, Messages.TLS_NO_KEY + remedy);
    }

    @Test
    void aFileOfTheMaximumSizeIsReadAndOneByteMoreIsRefused() throws Exception {
        byte[] pem = Files.readAllBytes(client.cert());
        Path cert = place.resolve("padded.pem");
        byte[] padded = Arrays.copyOf(pem, TlsFiles.FILE_BYTES_MAX);
        Arrays.fill(padded, pem.length, padded.length, (byte) '\n');
        Files.write(cert, padded);
        assertNotNull(files(cert, client.key()).context());
        Files.write(cert, new byte[] {'\n'}, StandardOpenOption.APPEND);
        String why = Messages.tlsTooLarge(TlsFiles.FILE_BYTES_MAX);
        fails(files(cert, client.key()), "tls_client_cert", cert, why);
    }

    private TlsFiles files(Path cert, Path key) {
        return new TlsFiles(ours.file.toString(), cert.toString(), key.toString());
    }

    private static void fails(TlsFiles files, String setting, Path file, String why) {
        String said = assertThrows(IOException.class, files::context).getMessage();
        assertEquals(setting + "=" + file + ": " + why, said);
    }

    /** Checks that the agent connects only to a server of the trusted authority. */
    private void connects() throws Exception {
        String cert = client.cert().toString();
        String key = client.key().toString();
        try (WireServer server = new WireServer(context, true)) {
            handshake(server, new TlsFiles(ours.file.toString(), cert, key));
            assertNull(server.fault);
            TlsFiles others = new TlsFiles(other.file.toString(), cert, key);
            assertThrows(SSLException.class, () -> handshake(server, others));
            TlsFiles system = new TlsFiles("system", cert, key);
            assertThrows(SSLException.class, () -> handshake(server, system));
        }
    }

    private static void handshake(WireServer server, TlsFiles files) throws IOException {
        try (SSLSocket socket =
                (SSLSocket)
                        files.context()
                                .getSocketFactory()
                                .createSocket("127.0.0.1", server.port())) {
            socket.startHandshake();
            assertNotNull(socket.getSession().getLocalCertificates());
        }
    }

    private static final class TrustingProvider extends Provider {
        static final String NAME = "Trusting";

        TrustingProvider() {
            super(NAME, "1", "trusts all, has no keys");
            for (String algorithm : new String[] {"TrustAll", "PKIX"}) {
                put("TrustManagerFactory." + algorithm, TrustAll.class.getName());
            }
            for (String algorithm : new String[] {"NoKeys", "SunX509"}) {
                put("KeyManagerFactory." + algorithm, NoKeys.class.getName());
            }
        }
    }

    public static final class TrustAll extends TrustManagerFactorySpi implements X509TrustManager {
        @Override
        protected void engineInit(KeyStore store) {}

        @Override
        protected void engineInit(ManagerFactoryParameters parameters) {}

        @Override
        protected TrustManager[] engineGetTrustManagers() {
            return new TrustManager[] {this};
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }

    public static final class NoKeys extends KeyManagerFactorySpi {
        @Override
        protected void engineInit(KeyStore store, char[] password) {}

        @Override
        protected void engineInit(ManagerFactoryParameters parameters) {}

        @Override
        protected KeyManager[] engineGetKeyManagers() {
            return new KeyManager[0];
        }
    }
}
