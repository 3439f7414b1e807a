package io.tachograph.overhead.sink;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;

/** OTLP over HTTP/1.1 with protobuf, not compressed: {@code POST /v1/traces}, answered with 200. */
final class OtlpRequests implements Receiver {
    private static final int BUFFER_BYTES = 1 << 18;
    private static final byte[] ANSWER = HttpRequest.answer("200 OK\r\nContent-Type: application/x-protobuf");

    private static final int LENGTH_DELIMITED = 2;

    /** Field numbers from the root to a span: resource_spans, scope_spans, spans. */
    private static final int[] PATH = {1, 2, 2};

    @Override
    public void serve(InputStream socket, OutputStream out, Tally tally) throws IOException {
        InputStream in = new BufferedInputStream(socket, BUFFER_BYTES);
        for (HttpRequest request = HttpRequest.read(in);
                request != null;
                request = HttpRequest.read(in)) {
            byte[] body = request.body().readAllBytes();
            request.finish();
            tally.bytes.addAndGet(body.length);
            if (request.line().startsWith("POST /v1/traces ")) {
                tally.calls(spans(ByteBuffer.wrap(body), 0));
            }
            out.write(ANSWER);
        }
    }

    /**
     * Counts the spans in a message: at level 0 a request ({@code ExportTraceServiceRequest}), at
     * level n a field with the number {@code PATH[n - 1]}.
     */
    static long spans(ByteBuffer message, int level) throws MalformedException {
        long spans = 0;
        try {
            while (message.hasRemaining()) {
                long key = NativeFrames.varint(message);
                int field = (int) (key >>> 3);
                switch ((int) key & 7) {
                    case 0:
                        NativeFrames.varint(message);
                        break;
                    case 1:
                        message.position(message.position() + 8);
                        break;
                    case LENGTH_DELIMITED:
                        int length = Math.toIntExact(NativeFrames.varint(message));
                        if (field == PATH[level]) {
                            boolean span = level == PATH.length - 1;
                            spans += span ? 1 : spans(message.slice(message.position(), length), level + 1);
                        }
                        message.position(message.position() + length);
                        break;
                    case 5:
                        message.position(message.position() + 4);
                        break;
                    default:
                        throw new MalformedException("a field of the wire type " + (key & 7));
                }
            }
        } catch (RuntimeException e) {
            throw new MalformedException("a request that is no protobuf: " + e);
        }
        return spans;
    }
}
