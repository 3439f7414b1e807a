package io.tachograph.core.wire;

import java.util.zip.CRC32C;

/**
 * The envelope of every message of the protocol.
 *
 * <pre>
 *  0        4    5    6    8        12
 *  +--------+----+----+----+--------+------+
 *  | length |type|  0 |  0 | crc32c | body |
 *  +--------+----+----+----+--------+------+
 * </pre>
 */
public final class Frame {
    private Frame() {}

    /** Reserves space for the header. The caller then writes the body and calls {@link #finish}. */
    public static Bytes begin(Bytes out) {
        return out.clear().u64(0).u32(0);
    }

    public static void finish(Bytes frame, int type) {
        frame.putU32(0, frame.size() - Wire.FRAME_HEADER_BYTES);
        frame.putU32(4, type);
        frame.putU32(8, checksum(frame.array(), 0, frame.size() - Wire.FRAME_HEADER_BYTES));
    }

    public static byte[] of(int type, byte[] body, int from, int count) {
        Bytes frame = begin(new Bytes(Wire.FRAME_HEADER_BYTES + count)).raw(body, from, count);
        finish(frame, type);
        return frame.copy();
    }

    /** Returns the CRC-32C of the first 8 bytes of the header, followed by the whole body. */
    static int checksum(byte[] frame, int at, int bodyBytes) {
        CRC32C crc = new CRC32C();
        crc.update(frame, at, 8);
        crc.update(frame, at + Wire.FRAME_HEADER_BYTES, bodyBytes);
        return (int) crc.getValue();
    }
}
