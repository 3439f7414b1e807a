package io.tachograph.core.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A growing byte array with the primitive types of the protocol, little endian. */
public final class Bytes {
    /** Length of the longest varint: 64 bits, seven per byte. */
    public static final int VARINT_BYTES_MAX = 10;

    private byte[] array;
    private int size;

    public Bytes(int capacity) {
        array = new byte[capacity];
    }

    public int size() {
        return size;
    }

    /** Valid up to {@link #size} until the next write. */
    public byte[] array() {
        return array;
    }

    public byte[] copy() {
        return Arrays.copyOf(array, size);
    }

    public Bytes clear() {
        size = 0;
        return this;
    }

    public Bytes u8(int value) {
        reserve(1);
        array[size++] = (byte) value;
        return this;
    }

    public Bytes u32(int value) {
        reserve(4);
        for (int shift = 0; shift < 32; shift += 8) {
            array[size++] = (byte) (value >>> shift);
        }
        return this;
    }

    public Bytes u64(long value) {
        reserve(8);
        for (int shift = 0; shift < 64; shift += 8) {
            array[size++] = (byte) (value >>> shift);
        }
        return this;
    }

    /** Appends eight bytes, most significant byte first, for halves of ids. */
    public Bytes id8(long value) {
        return u64(Long.reverseBytes(value));
    }

    /** Appends unsigned LEB128. */
    public Bytes varint(long value) {
        reserve(VARINT_BYTES_MAX);
        size = putVarint(array, size, value);
        return this;
    }

    /**
     * Writes unsigned LEB128 into an array with sufficient space.
     *
     * @return the position after the number
     */
    public static int putVarint(byte[] into, int at, long value) {
        while ((value & ~0x7fL) != 0) {
            into[at++] = (byte) (value | 0x80);
            value >>>= 7;
        }
        into[at] = (byte) value;
        return at + 1;
    }

    /**
     * Sets the end after a caller has called {@link #reserve} and written into {@link #array} with
     * {@link #putVarint}.
     */
    public void end(int at) {
        size = at;
    }

    long peekVarint(int at) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = array[at++];
            value |= (next & 0x7fL) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }

    /** Number of bytes of the varint at a position. */
    int peekWidth(int at) {
        int end = at;
        while (array[end] < 0) {
            end++;
        }
        return end + 1 - at;
    }

    /** The following bytes move if the widths differ. */
    void replaceVarint(int at, long value) {
        int before = peekWidth(at);
        int width = Math.max(1, (70 - Long.numberOfLeadingZeros(value)) / 7);
        reserve(VARINT_BYTES_MAX);
        System.arraycopy(array, at + before, array, at + width, size - at - before);
        size += width - before;
        putVarint(array, at, value);
    }

    public Bytes zigzag(long value) {
        return varint(value << 1 ^ value >> 63);
    }

    public Bytes string(String text) {
        return blob(text.getBytes(StandardCharsets.UTF_8));
    }

    public Bytes blob(byte[] bytes) {
        return varint(bytes.length).raw(bytes, 0, bytes.length);
    }

    public Bytes raw(Bytes other) {
        return raw(other.array, 0, other.size);
    }

    public Bytes raw(byte[] bytes, int from, int count) {
        reserve(count);
        System.arraycopy(bytes, from, array, size, count);
        size += count;
        return this;
    }

    void putU32(int at, int value) {
        for (int index = 0; index < 4; index++) {
            array[at + index] = (byte) (value >>> 8 * index);
        }
    }

    public void reserve(int count) {
        if (array.length - size < count) {
            array = Arrays.copyOf(array, Math.max(array.length * 2, size + count));
        }
    }

    /**
     * Encodes text as at most {@code bytesMax} bytes of UTF-8. Longer text is cut between
     * characters and ends with an ellipsis. Lone surrogates become {@code ?}, as in Java.
     */
    public static byte[] utf8(String text, int bytesMax) {
        // Each char takes at least one byte. A surrogate pair that is cut in half here is removed
        // below.
        String head = text.length() > bytesMax ? text.substring(0, bytesMax) : text;
        byte[] bytes = head.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= bytesMax && head.length() == text.length()) {
            return bytes;
        }
        int end = Math.min(bytes.length, bytesMax - 3);
        while (end > 0 && end < bytes.length && (bytes[end] & 0xc0) == 0x80) {
            end--;
        }
        byte[] cut = Arrays.copyOf(bytes, end + 3);
        cut[end] = (byte) 0xe2;
        cut[end + 1] = (byte) 0x80;
        cut[end + 2] = (byte) 0xa6;
        return cut;
    }
}
