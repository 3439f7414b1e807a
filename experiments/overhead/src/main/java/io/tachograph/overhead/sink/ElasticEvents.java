package io.tachograph.overhead.sink;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The intake of Elastic APM: a long {@code POST /intake/v2/events} with one event per line. Events
 * are counted as lines arrive. A transaction is the outermost call, and a span is a nested call.
 */
final class ElasticEvents implements Receiver {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final byte[] TRANSACTION = "{\"transaction\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] SPAN = "{\"span\"".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] ACCEPTED = HttpRequest.answer("202 Accepted");
    private static final byte[] NOTHING = HttpRequest.answer("404 Not Found");

    @Override
    public void serve(InputStream socket, OutputStream out, Tally tally) throws IOException {
        InputStream in = new BufferedInputStream(socket, BUFFER_BYTES);
        for (HttpRequest request = HttpRequest.read(in);
                request != null;
                request = HttpRequest.read(in)) {
            boolean events = request.line().startsWith("POST /intake/v2/events");
            count(request.body(), tally);
            request.finish();
            out.write(events ? ACCEPTED : NOTHING);
        }
    }

    /**
     * Lines may arrive in pieces. The start of a line is kept until the type of the event is known.
     */
    private static void count(InputStream body, Tally tally) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        byte[] begin = new byte[TRANSACTION.length];
        int kept = 0;
        for (int length = body.read(buffer); length >= 0; length = body.read(buffer)) {
            tally.bytes.addAndGet(length);
            for (int at = 0; at < length; at++) {
                if (buffer[at] == '\n') {
                    kept = 0;
                } else if (kept < begin.length) {
                    begin[kept++] = buffer[at];
                    if (isAt(begin, kept, SPAN) || isAt(begin, kept, TRANSACTION)) {
                        tally.calls(1);
                    }
                }
            }
        }
    }

    private static boolean isAt(byte[] begin, int kept, byte[] name) {
        return kept == name.length && Arrays.equals(begin, 0, kept, name, 0, kept);
    }
}
