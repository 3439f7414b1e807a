package io.tachograph.testing;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Reads the primitive types of the protocol. Missing bytes, a varint of more than 10 bytes, and a
 * count that does not fit into an int throw a {@link RuntimeException}.
 */
public final class Fields {
    private final byte[] bytes;
    private int at;

    public Fields(byte[] bytes) {
        this.bytes = bytes;
    }

    public boolean atEnd() {
        return at == bytes.length;
    }

    public int u8() {
        check(at < bytes.length, "the bytes end inside a field");
        return bytes[at++] & 0xff;
    }

    public long u64() {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 8) {
            value |= (long) u8() << shift;
        }
        return value;
    }

    public long id8() {
        return Long.reverseBytes(u64());
    }

    public long varint() {
        long value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            int next = u8();
            value |= (long) (next & 0x7f) << shift;
            if (next < 0x80) {
                return value;
            }
        }
        throw new IllegalStateException("varint of more than 10 bytes");
    }

    public int count() {
        return Math.toIntExact(varint());
    }

    public long zigzag() {
        long value = varint();
        return value >>> 1 ^ -(value & 1);
    }

    public byte[] blob() {
        return raw(count());
    }

    public byte[] raw(int count) {
        check(
                count >= 0 && count <= bytes.length - at,
                "a field of " + count + " bytes goes past the end");
        at += count;
        return Arrays.copyOfRange(bytes, at - count, at);
    }

    public String string() {
        return new String(blob(), StandardCharsets.UTF_8);
    }

    public static String hex(long value) {
        return HexFormat.of().toHexDigits(value);
    }

    public static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
