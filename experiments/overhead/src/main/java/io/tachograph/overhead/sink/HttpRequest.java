package io.tachograph.overhead.sink;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.zip.InflaterInputStream;

/**
 * One HTTP/1.1 request. Supports only the features that senders of records use.
 *
 * @param line method, path and version
 * @param body the decompressed content
 * @param raw the body before decompression; call {@link #finish} before the next request
 */
record HttpRequest(String line, InputStream body, InputStream raw) {
    private static final int LINE_BYTES_MAX = 8_192;
    private static final long BODY_BYTES_MAX = 64 << 20;

    /** Null at the end of the stream. */
    static HttpRequest read(InputStream in) throws IOException {
        String request = readLine(in);
        if (request == null) {
            return null;
        }
        InputStream body = new Body(in, 0, false);
        boolean deflated = false;
        for (String header = readLine(in); header != null && !header.isEmpty(); header = readLine(in)) {
            String[] parts = header.toLowerCase(Locale.ROOT).split(":", 2);
            String value = parts.length > 1 ? parts[1].trim() : "";
            switch (parts[0]) {
                case "content-length":
                    body = new Body(in, length(value, 10), false);
                    break;
                case "transfer-encoding":
                    body = new Body(in, 0, value.contains("chunked"));
                    break;
                case "content-encoding":
                    deflated = value.equals("deflate");
                    if (!deflated) {
                        throw new Receiver.MalformedException("a body that is compressed by " + value);
                    }
                    break;
                default:
                    // Other headers do not describe the body.
            }
        }
        return new HttpRequest(request, deflated ? new InflaterInputStream(body) : body, body);
    }

    /** Skips the rest of the body: compressed content may end before the last HTTP chunk. */
    void finish() throws IOException {
        raw.transferTo(OutputStream.nullOutputStream());
    }

    static byte[] answer(String status) {
        return ("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII);
    }

    private static long length(String text, int base) throws IOException {
        try {
            long length = Long.parseLong(text, base);
            if (length >= 0 && length <= BODY_BYTES_MAX) {
                return length;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new Receiver.MalformedException("a body of \"" + text + "\" bytes");
    }

    /** Null at the end of the stream. */
    private static String readLine(InputStream in) throws IOException {
        ByteArrayOutputStream text = new ByteArrayOutputStream(128);
        for (int next = in.read(); next >= 0; next = in.read()) {
            if (next == '\n') {
                return text.toString(StandardCharsets.US_ASCII).stripTrailing();
            }
            if (text.size() >= LINE_BYTES_MAX) {
                throw new Receiver.MalformedException(
                        "a header line of more than " + LINE_BYTES_MAX + " bytes");
            }
            text.write(next);
        }
        return null;
    }

    /** A body with a given number of bytes, or with chunks up to the empty chunk. */
    private static final class Body extends InputStream {
        private final InputStream in;
        private final boolean chunked;
        private long left;
        private boolean first = true;
        private boolean ended;

        Body(InputStream in, long left, boolean chunked) {
            this.in = in;
            this.left = left;
            this.chunked = chunked;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int at, int length) throws IOException {
            if (left == 0 && chunked && !ended) {
                beginChunk();
            }
            if (left == 0) {
                return -1;
            }
            int got = in.read(into, at, (int) Math.min(length, left));
            if (got < 0) {
                throw new EOFException();
            }
            left -= got;
            return got;
        }

        private void beginChunk() throws IOException {
            if (!first) {
                readLine(in);
            }
            first = false;
            String size = readLine(in);
            if (size == null) {
                throw new EOFException();
            }
            left = length(size.split(";")[0].trim(), 16);
            if (left == 0) {
                ended = true;
                readLine(in);
            }
        }
    }
}
