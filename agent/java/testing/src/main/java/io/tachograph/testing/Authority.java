package io.tachograph.testing;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;

import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A certificate authority with its files in a directory. {@code openssl} makes the files. */
public final class Authority {
    private static final List<String> KEY =
            List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1");
    private static final char[] PASSWORD = "test".toCharArray();

    public final Path file;

    private final Path directory;
    private final Path ownKey;

    public record Pair(Path cert, Path key) {}

    public Authority(Path directory, String name) throws IOException {
        this.directory = directory;
        file = directory.resolve(name + ".pem");
        ownKey = directory.resolve(name + ".key");
        List<String> command = new ArrayList<>(List.of("req", "-x509", "-nodes", "-days", "2"));
        command.addAll(KEY);
        command.addAll(List.of("-subj", "/CN=" + name, "-keyout", ownKey.toString()));
        command.addAll(List.of("-out", file.toString()));
        openssl(command);
    }

    /** Makes a certificate for these names, such as {@code IP:127.0.0.1,DNS:localhost}. */
    public Pair sign(String name, String names) throws IOException {
        return sign(name, names, "-nodes");
    }

    /**
     * @param keyOption options of {@code openssl req} for the encryption of the key and for its
     *     algorithm; without {@code -newkey} the key is an EC key
     */
    public Pair sign(String name, String names, String... keyOption) throws IOException {
        Pair pair =
                new Pair(directory.resolve(name + ".cert.pem"), directory.resolve(name + ".key.pem"));
        Path request = directory.resolve(name + ".csr");
        Path extensions = directory.resolve(name + ".ext");
        List<String> command = new ArrayList<>(List.of("req", "-subj", "/CN=" + name));
        command.addAll(List.of(keyOption));
        if (!command.contains("-newkey")) {
            command.addAll(KEY);
        }
        command.addAll(List.of("-keyout", pair.key.toString(), "-out", request.toString()));
        openssl(command);
        Files.writeString(extensions, "subjectAltName=" + names + "\n");
        command = new ArrayList<>(List.of("x509", "-req", "-days", "2", "-CAcreateserial"));
        command.addAll(List.of("-CA", file.toString(), "-CAkey", ownKey.toString()));
        command.addAll(List.of("-in", request.toString(), "-out", pair.cert.toString()));
        command.addAll(List.of("-extfile", extensions.toString()));
        openssl(command);
        return pair;
    }

    /** The TLS context of a server that shows this certificate and trusts this authority. */
    public SSLContext context(Pair pair) throws IOException {
        Path store = directory.resolve(pair.cert.getFileName() + ".p12");
        List<String> command = new ArrayList<>(List.of("pkcs12", "-export", "-passout"));
        command.addAll(List.of("pass:" + new String(PASSWORD), "-inkey", pair.key.toString()));
        command.addAll(List.of("-in", pair.cert.toString(), "-out", store.toString()));
        openssl(command);
        try {
            KeyStore keys = KeyStore.getInstance("PKCS12");
            keys.load(new ByteArrayInputStream(Files.readAllBytes(store)), PASSWORD);
            KeyManagerFactory shown =
                    KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            shown.init(keys, PASSWORD);
            TrustManagerFactory trusted =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trusted.init(trustStore());
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(shown.getKeyManagers(), trusted.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    private KeyStore trustStore() throws IOException, GeneralSecurityException {
        var factory = java.security.cert.CertificateFactory.getInstance("X.509");
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (var in = Files.newInputStream(file)) {
            store.setCertificateEntry("ca", factory.generateCertificate(in));
        }
        return store;
    }

    /** @throws IOException with the output of {@code openssl}, if it fails */
    public static void openssl(List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("openssl"));
        command.addAll(arguments);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        byte[] said = process.getInputStream().readAllBytes();
        try {
            if (process.waitFor() != 0) {
                throw new IOException(command + ": " + new String(said, StandardCharsets.UTF_8));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException(e);
        }
    }
}
