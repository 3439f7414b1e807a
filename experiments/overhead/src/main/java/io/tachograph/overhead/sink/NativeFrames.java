package io.tachograph.overhead.sink;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * Tachograph's own protocol ({@code docs/format/wire.md}). Acknowledges every DATA frame immediately.
 * Can send one rule that switches methods off or aggregates their calls.
 */
final class NativeFrames implements Receiver {
    private static final int BUFFER_BYTES = 1 << 18;
    private static final int HEADER_BYTES = 12;
    private static final int BODY_BYTES_MAX = 4_194_304;
    private static final int HEARTBEAT_MS = 5_000;

    private static final int HELLO = 1;
    private static final int DATA = 3;
    private static final int PING = 4;
    private static final int PROBED = 6;
    private static final int WELCOME = 65;
    private static final int ACK = 66;
    private static final int PONG = 68;
    private static final int PROBES = 71;

    private static final int TAG_SEGMENT = 3;
    private static final int CONTINUED = 1;
    private static final int HAS_PARENT = 2;
    private static final int TRACE_GIVEN = 4;
    private static final int TRACE_OF_SEGMENT = 8;

    private final byte[] rule;

    /**
     * @param rule {@code off:PATTERN} or {@code aggregate:PATTERN}; empty for none
     */
    NativeFrames(String rule) {
        this.rule = rule.isEmpty() ? new byte[0] : probes(rule);
    }

    @Override
    public void serve(InputStream socket, OutputStream out, Tally tally) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(socket, BUFFER_BYTES));
        byte[] header = new byte[HEADER_BYTES];
        while (true) {
            in.readFully(header);
            int length = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt();
            if (length < 0 || length > BODY_BYTES_MAX) {
                throw new MalformedException("a frame of " + length + " bytes");
            }
            byte[] body = new byte[length];
            in.readFully(body);
            tally.bytes.addAndGet(HEADER_BYTES + length);
            try {
                take(header[4], ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN), out, tally);
            } catch (RuntimeException e) {
                throw new MalformedException("a frame of type " + header[4] + ": " + e);
            }
        }
    }

    private void take(int type, ByteBuffer body, OutputStream out, Tally tally) throws IOException {
        switch (type) {
            case HELLO:
                ByteBuffer welcome = buffer().put((byte) 1).put((byte) 0);
                out.write(frame(WELCOME, varint(varint(welcome, BODY_BYTES_MAX), HEARTBEAT_MS)));
                out.write(rule);
                break;
            case DATA:
                long seq = varint(body);
                tally.halves.addAndGet(events(body));
                out.write(frame(ACK, varint(buffer(), seq)));
                break;
            case PING:
                tally.dropped.set(varint(body));
                out.write(frame(PONG, buffer().putLong(System.currentTimeMillis() * 1_000_000)));
                break;
            case PROBED:
                varint(body);
                varint(body);
                tally.switched.set(varint(body) + varint(body));
                break;
            default:
                // Other frames, for example DICT and BYE, need no answer.
        }
    }

    /** Counts the enters and exits in the body of a DATA frame, from the byte after its number. */
    static long events(ByteBuffer body) {
        long events = 0;
        body.getLong();
        while (body.hasRemaining()) {
            int tag = body.get();
            int length = Math.toIntExact(varint(body));
            int next = body.position() + length;
            if (tag == TAG_SEGMENT) {
                events += segmentEvents(body);
            }
            body.position(next);
        }
        return events;
    }

    private static long segmentEvents(ByteBuffer segment) {
        int flags = segment.get();
        varint(segment);
        if ((flags & TRACE_GIVEN) != 0) {
            segment.position(segment.position() + 16);
        }
        if ((flags & TRACE_OF_SEGMENT) != 0) {
            varint(segment);
        }
        varint(segment);
        varint(segment);
        if ((flags & HAS_PARENT) != 0) {
            segment.position(segment.position() + 8);
        }
        if ((flags & CONTINUED) != 0) {
            varint(segment);
            varint(segment);
            for (long left = 3 * varint(segment); left > 0; left--) {
                varint(segment);
            }
        }
        return varint(segment);
    }

    private static byte[] probes(String rule) {
        int colon = rule.indexOf(':');
        String state = rule.substring(0, Math.max(0, colon));
        if (!state.equals("off") && !state.equals("aggregate")) {
            throw new IllegalArgumentException(
                    "\"" + rule + "\" is neither off:PATTERN nor aggregate:PATTERN");
        }
        byte[] pattern = rule.substring(colon + 1).getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = ByteBuffer.allocate(16 + pattern.length);
        varint(varint(body, 1), 1);
        body.put((byte) (state.equals("off") ? 0 : 2));
        return frame(PROBES, varint(body, pattern.length).put(pattern));
    }

    private static ByteBuffer buffer() {
        return ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
    }

    static byte[] frame(int type, ByteBuffer filled) {
        int length = filled.position();
        ByteBuffer frame =
                ByteBuffer.allocate(HEADER_BYTES + length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(length).put((byte) type).put((byte) 0).putShort((short) 0);
        CRC32C sum = new CRC32C();
        sum.update(frame.array(), 0, 8);
        sum.update(filled.array(), 0, length);
        return frame.putInt((int) sum.getValue()).put(filled.array(), 0, length).array();
    }

    private static ByteBuffer varint(ByteBuffer into, long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            into.put((byte) (rest | 0x80));
            rest >>>= 7;
        }
        return into.put((byte) rest);
    }

    static long varint(ByteBuffer from) {
        long value = 0;
        for (int shift = 0; shift < Long.SIZE; shift += 7) {
            byte next = from.get();
            value |= (next & 0x7fL) << shift;
            if (next >= 0) {
                return value;
            }
        }
        throw new IllegalArgumentException("a number of more than 64 bits");
    }
}
