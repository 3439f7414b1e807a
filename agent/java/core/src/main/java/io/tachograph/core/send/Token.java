package io.tachograph.core.send;

import io.tachograph.core.log.Messages;
import io.tachograph.core.wire.Wire;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The settings {@code token}, {@code token_file} and {@code insecure_token}. The token is sent in
 * HELLO only; no log line and no {@code toString()} contains it.
 */
final class Token {
    /**
     * Maximum number of bytes read: the longest token, a line end of at most two bytes, and one
     * byte more to detect a token that is too long.
     */
    private static final int READ_BYTES = Wire.TOKEN_BYTES_MAX + 3;

    private final String given;
    private final String file;

    /** True if the token may be sent to other machines without TLS. */
    final boolean isInsecure;

    /**
     * @param given the token; empty for none
     * @param file path of the file that contains the token; empty for none
     */
    Token(String given, String file, boolean isInsecure) {
        this.given = given;
        this.file = file;
        this.isInsecure = isInsecure;
    }

    /** The setting that gives the token, as messages name it. */
    String setting() {
        return file.isEmpty() ? "token" : "token_file=" + file;
    }

    /**
     * Reads the token for the next connection. The file may have changed since the last connection.
     *
     * @return empty if no token is set
     * @throws IOException with the setting and the reason, if the token cannot be read or is
     *     invalid, or if {@code token} and {@code token_file} are both set
     */
    byte[] read() throws IOException {
        if (!file.isEmpty() && !given.isEmpty()) {
            throw new IOException(Messages.TOKEN_TWICE);
        }
        // Each byte of a file becomes one character, so that bytes outside of ASCII are refused.
        String text = file.isEmpty() ? given : withoutLineEnd(content());
        if (file.isEmpty() && text.isEmpty()) {
            return new byte[0];
        }
        boolean isVisible = text.chars().allMatch(c -> c > ' ' && c < 0x7f);
        if (text.isEmpty() || text.length() > Wire.TOKEN_BYTES_MAX || !isVisible) {
            throw unusable(Messages.tokenForm(Wire.TOKEN_BYTES_MAX));
        }
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private String content() throws IOException {
        String why = Messages.TLS_NOT_A_FILE;
        try {
            Path path = Path.of(file);
            // Reading a FIFO would wait for a writer.
            if (Files.readAttributes(path, BasicFileAttributes.class).isRegularFile()) {
                try (InputStream in = Files.newInputStream(path)) {
                    byte[] bytes = in.readNBytes(READ_BYTES);
                    return new String(bytes, StandardCharsets.ISO_8859_1);
                }
            }
        } catch (NoSuchFileException e) {
            why = "no such file";
        } catch (IOException | RuntimeException e) {
            why = e.getMessage() == null ? e.toString() : e.getMessage();
        }
        throw unusable(why);
    }

    private static String withoutLineEnd(String text) {
        String line = text.endsWith("\n") ? text.substring(0, text.length() - 1) : text;
        return line.endsWith("\r") ? line.substring(0, line.length() - 1) : line;
    }

    private IOException unusable(String why) {
        return new IOException(Messages.tokenUnusable(setting(), why));
    }
}
