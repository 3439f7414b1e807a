package bulletinboard.web;

import bulletinboard.service.InvalidInputException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.MimeTypes;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.UrlEncoded;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Set;

record Call(Request request, String path) {
    /** Enough for the largest escaped advertisement: 4,320 characters of at most 9 bytes. */
    static final int FORM_BYTES_MAX = 64 * 1024;

    /**
     * Limit on the further bytes of an oversized body that the server discards before it answers. A
     * client that is still sending when the server closes the connection might not see the answer
     * (RFC 9112, section 9.6).
     */
    static final int REFUSED_BYTES_MAX = 1024 * 1024;

    /** The id at the end of {@code /ads/ID}. */
    long id() {
        String text = path.substring(path.lastIndexOf('/') + 1);
        try {
            long id = Long.parseLong(text);
            if (id > 0) {
                return id;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new InvalidInputException("id must be a whole number above 0, got " + text);
    }

    Parameters query(Set<String> known) {
        Fields fields = new Fields();
        decode(request.getHttpURI().getQuery(), fields);
        return new Parameters(fields, known);
    }

    Parameters form(Set<String> known) {
        query(Set.of());
        String type = request.getHeaders().get(HttpHeader.CONTENT_TYPE);
        if (type == null
                || !type.split(";", 2)[0]
                        .strip()
                        .equalsIgnoreCase(MimeTypes.Type.FORM_ENCODED.asString())) {
            throw new RefusedException(
                    415, "the body must be " + MimeTypes.Type.FORM_ENCODED.asString());
        }
        Fields fields = new Fields();
        decode(body(), fields);
        return new Parameters(fields, known);
    }

    private String body() {
        try (InputStream in = Content.Source.asInputStream(request)) {
            byte[] bytes = in.readNBytes(FORM_BYTES_MAX + 1);
            if (bytes.length > FORM_BYTES_MAX) {
                in.skip(REFUSED_BYTES_MAX);
                throw tooLarge();
            }
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            throw new InvalidInputException("the body is not UTF-8");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static RefusedException tooLarge() {
        return new RefusedException(413, "the body is longer than " + FORM_BYTES_MAX + " bytes");
    }

    private static void decode(String encoded, Fields into) {
        if (encoded == null || encoded.isEmpty()) {
            return;
        }
        try {
            UrlEncoded.decodeTo(encoded, into::add, StandardCharsets.UTF_8);
        } catch (RuntimeException e) {
            throw new InvalidInputException("parameters are not URL-encoded UTF-8");
        }
    }
}
