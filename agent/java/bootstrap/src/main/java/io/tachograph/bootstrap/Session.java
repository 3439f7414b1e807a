package io.tachograph.bootstrap;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.security.SecureRandom;

/**
 * The identity of this process' life: 16 random bytes from which all trace and span ids follow
 * (wire.md, DATA, segment), so that none of them has to be stored or drawn.
 */
public final class Session {
    private static final Session SHARED = draw();

    private final long high;
    private final long low;

    /**
     * @param high the first eight bytes, most significant first
     * @param low the last eight
     */
    public Session(long high, long low) {
        this.high = high;
        this.low = low;
    }

    /** The session of this process. */
    public static Session shared() {
        return SHARED;
    }

    public long high() {
        return high;
    }

    public long low() {
        return low;
    }

    /**
     * Span base of segment {@code number}: call {@code k} has the span id {@code mix64(base + k)}.
     */
    public long base(long number) {
        return low + (number << 24);
    }

    /**
     * Low half of the trace id of a trace that begins with segment {@code number}; the high half is
     * {@link #high}.
     */
    public long traceLow(long number) {
        return mix64(base(number));
    }

    /**
     * Finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the same as {@code
     * tacho_model::mix64}.
     */
    public static long mix64(long n) {
        n = (n ^ n >>> 30) * 0xbf58476d1ce4e5b9L;
        n = (n ^ n >>> 27) * 0x94d049bb133111ebL;
        return n ^ n >>> 31;
    }

    private static Session draw() {
        byte[] bytes = new byte[16];
        // The security providers cost 50 ms of start-up time; the device gives the same bytes.
        try (InputStream random = new FileInputStream("/dev/urandom")) {
            if (random.readNBytes(bytes, 0, bytes.length) < bytes.length) {
                new SecureRandom().nextBytes(bytes);
            }
        } catch (IOException e) {
            new SecureRandom().nextBytes(bytes);
        }
        ByteBuffer halves = ByteBuffer.wrap(bytes);
        // A zero high half would make a zero trace id thinkable, which W3C forbids.
        return new Session(halves.getLong() | 1L << 32, halves.getLong());
    }
}
