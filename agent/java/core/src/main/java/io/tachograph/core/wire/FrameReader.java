package io.tachograph.core.wire;

import io.tachograph.core.log.Messages;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Extracts the frames of the server from the received bytes. */
public final class FrameReader {
    /** Longest accepted body. PROBES has up to 1,000 patterns of at most 1,024 bytes. */
    private static final int BODY_BYTES_MAX = 1 << 20;

    /**
     * The value of the length field if the received bytes begin with "HTTP", as an answer of the
     * server's HTTP port does.
     */
    private static final int HTTP = 0x50545448;

    private byte[] pending = new byte[4_096];
    private int size;
    private int type;
    private byte[] body;

    /** The bytes are damaged, or not from a server of this protocol. */
    public static final class Damaged extends Exception {
        private static final long serialVersionUID = 1;

        public Damaged(String message) {
            super(message);
        }
    }

    public void push(ByteBuffer bytes) {
        int count = bytes.remaining();
        if (pending.length - size < count) {
            pending = Arrays.copyOf(pending, Math.max(pending.length * 2, size + count));
        }
        bytes.get(pending, size, count);
        size += count;
    }

    /** Advances to the next complete frame. @return false if more bytes are needed */
    public boolean next() throws Damaged {
        if (size < Wire.FRAME_HEADER_BYTES) {
            return false;
        }
        ByteBuffer header = ByteBuffer.wrap(pending).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        int length = header.getInt(0);
        if (length == HTTP) {
            throw new Damaged(Messages.SERVER_IS_HTTP);
        }
        if (length < 0 || length > BODY_BYTES_MAX) {
            throw new Damaged("a frame claims " + Integer.toUnsignedString(length) + " bytes");
        }
        int whole = Wire.FRAME_HEADER_BYTES + length;
        if (size < whole) {
            return false;
        }
        if (header.getInt(8) != Frame.checksum(pending, 0, length)) {
            throw new Damaged("checksum mismatch");
        }
        type = pending[4] & 0xff;
        body = Arrays.copyOfRange(pending, Wire.FRAME_HEADER_BYTES, whole);
        System.arraycopy(pending, whole, pending, 0, size - whole);
        size -= whole;
        return true;
    }

    public int type() {
        return type;
    }

    public BodyReader body() {
        return new BodyReader(body);
    }
}
