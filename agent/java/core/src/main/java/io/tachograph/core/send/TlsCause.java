package io.tachograph.core.send;

import io.tachograph.core.log.Messages;

import java.io.IOException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertificateException;
import java.util.regex.Pattern;

import javax.net.ssl.SSLException;

/** Names the cause of a TLS failure. The JDK distinguishes some causes only by the message. */
final class TlsCause {
    private static final Pattern NOT_TLS =
            Pattern.compile("unrecognized|plaintext|unsupported record", Pattern.CASE_INSENSITIVE);
    private static final Pattern ALERT =
            Pattern.compile("alert: (.*certificate.*|unknown_ca|handshake_failure|access_denied)");
    private static final Pattern OTHER_NAME =
            Pattern.compile("No (subject alternative|name matching)");

    private final String host;
    private final boolean hasCertificate;

    /**
     * @param host the name or address of the server
     * @param hasCertificate true if the agent has a client certificate
     */
    TlsCause(String host, boolean hasCertificate) {
        this.host = host;
        this.hasCertificate = hasCertificate;
    }

    IOException of(SSLException error) {
        return new IOException(text(error), error);
    }

    private String text(SSLException error) {
        String said = String.valueOf(error.getMessage());
        if (NOT_TLS.matcher(said).find()) {
            return Messages.tlsNotThere(said);
        }
        if (ALERT.matcher(said).find()) {
            return hasCertificate
                    ? Messages.tlsClientCertRefused(said)
                    : Messages.tlsClientCertNeeded(said);
        }
        Throwable last = error;
        boolean isCertificate = false;
        while (last.getCause() != null && last.getCause() != last) {
            last = last.getCause();
            isCertificate |= last instanceof CertificateException;
        }
        String why = String.valueOf(last.getMessage());
        if (last instanceof CertPathBuilderException) {
            return Messages.tlsUntrusted(why);
        }
        if (OTHER_NAME.matcher(why).find()) {
            return Messages.tlsOtherName(host, why);
        }
        return isCertificate ? Messages.tlsInvalid(why) : Messages.tlsFailed(said);
    }
}
