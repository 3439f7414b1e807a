package io.tachograph.core.wire;

import java.nio.charset.StandardCharsets;

/** Reads the fields of a frame's body in sequence. */
public final class BodyReader {
    private final byte[] body;
    private int at;

    public BodyReader(byte[] body) {
        this.body = body;
    }

    public boolean atEnd() {
        return at >= body.length;
    }

    public int u8() throws FrameReader.Damaged {
        need(1);
        return body[at++] & 0xff;
    }

    public long u64() throws FrameReader.Damaged {
        need(8);
        long value = 0;
        for (int shift = 0; shift < 64; shift += 8) {
            value |= (long) (body[at++] & 0xff) << shift;
        }
        return value;
    }

    /** Most significant byte first. */
    public long id8() throws FrameReader.Damaged {
        return Long.reverseBytes(u64());
    }

    public long varint() throws FrameReader.Damaged {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            int next = u8();
            value |= (long) (next & 0x7f) << shift;
            if (next < 0x80) {
                if (shift == 63 && next > 1) {
                    break;
                }
                return value;
            }
        }
        throw new FrameReader.Damaged("a varint has more than 64 bits");
    }

    public long zigzag() throws FrameReader.Damaged {
        long value = varint();
        return value >>> 1 ^ -(value & 1);
    }

    public byte[] blob() throws FrameReader.Damaged {
        long count = varint();
        if (count < 0 || count > body.length - at) {
            throw new FrameReader.Damaged(
                    "a field of "
                            + Long.toUnsignedString(count)
                            + " bytes goes past the end of the body");
        }
        byte[] bytes = java.util.Arrays.copyOfRange(body, at, at + (int) count);
        at += (int) count;
        return bytes;
    }

    public String string() throws FrameReader.Damaged {
        return new String(blob(), StandardCharsets.UTF_8);
    }

    private void need(int count) throws FrameReader.Damaged {
        if (body.length - at < count) {
            throw new FrameReader.Damaged("the body ends inside a field");
        }
    }
}
