package io.tachograph.core.send;

import io.tachograph.core.log.Messages;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.Security;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * The files of the settings {@code tls_ca}, {@code tls_client_cert} and {@code tls_client_key}. The
 * files are read at each connection, so that renewed certificates are used. The agent has its own
 * SSL context, because the program may change the default context.
 */
final class TlsFiles {
    /** The value of {@code tls_ca} that selects the authorities that the JVM trusts by default. */
    private static final String SYSTEM = "system";

    /** Maximum size of a file. All authorities that a system trusts have about 256 KiB. */
    static final int FILE_BYTES_MAX = 4 << 20;

    private static final String CA = "tls_ca";
    private static final String CERT = "tls_client_cert";
    private static final String KEY = "tls_client_key";

    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \\1-----");

    /**
     * Matches an encrypted key: in PKCS #8, or in the older format of OpenSSL. The word {@code
     * ENCRYPTED} alone does not match, because it may also be in a comment.
     */
    private static final Pattern ENCRYPTED =
            Pattern.compile(
                    "^(-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: *4, *ENCRYPTED)",
                    Pattern.MULTILINE);

    /** By key algorithm: the signature algorithm to test whether a key belongs to a certificate. */
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA");

    private static final char[] PASSWORD = {'t'};

    /**
     * The TLS provider of the JDK; null in a JVM without it. It is looked up when the agent starts,
     * because the program may later make another provider the default, such as a provider that
     * trusts every server.
     */
    private final Provider provider = Security.getProvider("SunJSSE");

    private final String ca;
    private final String cert;
    private final String key;

    /**
     * @param ca path or {@code system}
     * @param cert path; empty for no certificate
     * @param key path; empty for none
     */
    TlsFiles(String ca, String cert, String key) {
        this.ca = ca;
        this.cert = cert;
        this.key = key;
    }

    boolean hasCertificate() {
        return !cert.isEmpty();
    }

    /**
     * @throws IOException with the setting and the reason, if a file cannot be used, or if only one
     *     of {@code tls_client_cert} and {@code tls_client_key} is set
     */
    SSLContext context() throws IOException {
        if (cert.isEmpty() != key.isEmpty()) {
            throw new IOException(
                    cert.isEmpty() ? Messages.tlsHalf(KEY, CERT) : Messages.tlsHalf(CERT, KEY));
        }
        KeyStore trusted = null;
        if (!ca.equals(SYSTEM)) {
            trusted = newStore();
            int number = 0;
            for (Certificate one : certificates(CA, ca)) {
                try {
                    trusted.setCertificateEntry("ca" + number++, one);
                } catch (GeneralSecurityException e) {
                    throw unusable(CA, ca, e.getMessage());
                }
            }
        }
        KeyManager[] shown = cert.isEmpty() ? null : keyManagers();
        try {
            TrustManagerFactory trust =
                    provider == null
                            ? TrustManagerFactory.getInstance(
                                    TrustManagerFactory.getDefaultAlgorithm())
                            : TrustManagerFactory.getInstance("PKIX", provider);
            trust.init(trusted);
            SSLContext context =
                    provider == null
                            ? SSLContext.getInstance("TLS")
                            : SSLContext.getInstance("TLS", provider);
            context.init(shown, trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException e) {
            throw unusable(CA, ca, e.getMessage());
        }
    }

    private KeyManager[] keyManagers() throws IOException {
        List<Certificate> chain = certificates(CERT, cert);
        PrivateKey own = privateKey();
        try {
            if (!belongs(own, chain.get(0))) {
                throw unusable(KEY, key, Messages.TLS_KEY_OTHER);
            }
            KeyStore store = newStore();
            store.setKeyEntry("agent", own, PASSWORD, chain.toArray(new Certificate[0]));
            KeyManagerFactory keys =
                    provider == null
                            ? KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm())
                            : KeyManagerFactory.getInstance("SunX509", provider);
            keys.init(store, PASSWORD);
            return keys.getKeyManagers();
        } catch (GeneralSecurityException e) {
            throw unusable(KEY, key, e.getMessage());
        }
    }

    private static KeyStore newStore() throws IOException {
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            return store;
        } catch (GeneralSecurityException e) {
            throw new IOException(Messages.tlsFailed(e.getMessage()), e);
        }
    }

    private static List<Certificate> certificates(String setting, String path) throws IOException {
        List<Certificate> found = new ArrayList<>();
        String text = read(setting, path);
        Matcher block = BLOCK.matcher(text);
        try {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            while (block.find()) {
                if (block.group(1).endsWith("CERTIFICATE")) {
                    byte[] bytes = Base64.getMimeDecoder().decode(block.group(2));
                    found.add(factory.generateCertificate(new ByteArrayInputStream(bytes)));
                }
            }
        } catch (GeneralSecurityException | IllegalArgumentException e) {
            throw unusable(setting, path, e.getMessage());
        }
        if (found.isEmpty()) {
            throw unusable(setting, path, Messages.TLS_NO_CERTIFICATE + remedy(text, path));
        }
        return found;
    }

    private PrivateKey privateKey() throws IOException {
        String text = read(KEY, key);
        if (ENCRYPTED.matcher(text).find()) {
            throw unusable(KEY, key, Messages.TLS_KEY_ENCRYPTED);
        }
        Matcher block = BLOCK.matcher(text);
        boolean isOther = false;
        while (block.find()) {
            if (block.group(1).equals("PRIVATE KEY")) {
                return privateKey(block.group(2));
            }
            isOther |= block.group(1).endsWith("PRIVATE KEY");
        }
        throw unusable(
                KEY,
                key,
                isOther
                        ? "the key is not PKCS #8, convert it: openssl pkcs8 -topk8 -nocrypt -in "
                                + key
                        : Messages.TLS_NO_KEY + remedy(text, key));
    }

    /**
     * Returns the remedy for a PKCS #12 file; empty for other files. A PKCS #12 file begins with
     * the tag of a sequence and a length in the long form.
     */
    private static String remedy(String text, String path) {
        boolean isBinary = text.length() > 1 && text.charAt(0) == 0x30 && text.charAt(1) >= 0x80;
        return isBinary ? "; convert a PKCS #12 file: openssl pkcs12 -nodes -in " + path : "";
    }

    private PrivateKey privateKey(String base64) throws IOException {
        String why = "";
        try {
            PKCS8EncodedKeySpec encoded =
                    new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(base64));
            for (String algorithm : List.of("RSA", "EC", "EdDSA", "RSASSA-PSS", "DSA")) {
                try {
                    return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
                } catch (GeneralSecurityException e) {
                    why = e.getMessage(); // the key may be of another algorithm
                }
            }
        } catch (IllegalArgumentException e) {
            why = e.getMessage();
        }
        throw unusable(KEY, key, "the key cannot be read: " + why);
    }

    private static boolean belongs(PrivateKey key, Certificate certificate)
            throws GeneralSecurityException {
        String algorithm = SIGNATURES.get(key.getAlgorithm());
        if (!key.getAlgorithm().equals(certificate.getPublicKey().getAlgorithm())) {
            return false;
        }
        if (algorithm == null) {
            return true; // the handshake fails if the key does not belong to the certificate
        }
        byte[] content = {1};
        Signature signature = Signature.getInstance(algorithm);
        signature.initSign(key);
        signature.update(content);
        byte[] signed = signature.sign();
        signature.initVerify(certificate.getPublicKey());
        signature.update(content);
        return signature.verify(signed);
    }

    /** Reads each byte as one character, because the comments in a file may be in any encoding. */
    private static String read(String setting, String path) throws IOException {
        String why = Messages.TLS_NOT_A_FILE;
        try {
            Path file = Path.of(path);
            // Reading a FIFO would wait for a writer.
            if (Files.readAttributes(file, BasicFileAttributes.class).isRegularFile()) {
                try (InputStream in = Files.newInputStream(file)) {
                    byte[] bytes = in.readNBytes(FILE_BYTES_MAX + 1);
                    if (bytes.length <= FILE_BYTES_MAX) {
                        return new String(bytes, StandardCharsets.ISO_8859_1);
                    }
                }
                why = Messages.tlsTooLarge(FILE_BYTES_MAX);
            }
        } catch (NoSuchFileException e) {
            why = "no such file";
        } catch (IOException | RuntimeException e) {
            why = e.getMessage() == null ? e.toString() : e.getMessage();
        }
        throw unusable(setting, path, why);
    }

    private static IOException unusable(String setting, String path, String why) {
        return new IOException(Messages.tlsUnusable(setting, path, why));
    }
}
