package io.tachograph.bootstrap;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.security.SecureRandom;

/**
 * The identity of one run of this process, 16 bytes. The ids of all spans of this process, and of
 * the traces that begin in it, are derived from the session (wire.md, DATA, segment). So these ids
 * need no random numbers, and a segment is sent with its number instead of its ids. The session
 * itself is derived from a secret (wire.md, HELLO), because a client that knows the public ids must
 * not be able to send in the name of this process.
 */
public final class Session {
    /** Prefix of sessions that are derived from a secret: "tach". */
    private static final int MARK = 0x74616368;

    private static final Session SHARED = draw();

    private final long high;
    private final long low;
    private final byte[] secret;

    /**
     * @param high the first eight bytes, most significant byte first
     * @param low the last eight bytes
     */
    public Session(long high, long low) {
        this(high, low, new byte[0]);
    }

    private Session(long high, long low, byte[] secret) {
        this.high = high;
        this.low = low;
        this.secret = secret;
    }

    /** Returns the session derived from a secret of 16 bytes. */
    public static Session of(byte[] secret) {
        int[] hash = SingleBlockHash.sha256("tachograph session", secret);
        long high = (long) MARK << 32 | Integer.toUnsignedLong(hash[0]);
        long low = (long) hash[1] << 32 | Integer.toUnsignedLong(hash[2]);
        return new Session(high, low, secret.clone());
    }

    public static Session shared() {
        return SHARED;
    }

    /** The secret of the session, used only in HELLO; empty if the session has no secret. */
    public byte[] secret() {
        return secret.clone();
    }

    public long high() {
        return high;
    }

    public long low() {
        return low;
    }

    /**
     * Returns the span base of segment {@code number}: call {@code k} of the segment has the span
     * id {@code mix64(base + k)}.
     */
    public long base(long number) {
        return low + (number << 24);
    }

    /**
     * Returns the low half of the id of a trace that begins with segment {@code number}. The high
     * half is {@link #high}.
     */
    public long traceLow(long number) {
        return mix64(base(number));
    }

    /**
     * The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); the same function as {@code
     * tacho_model::mix64}.
     */
    public static long mix64(long n) {
        n = (n ^ n >>> 30) * 0xbf58476d1ce4e5b9L;
        n = (n ^ n >>> 27) * 0x94d049bb133111ebL;
        return n ^ n >>> 31;
    }

    private static Session draw() {
        byte[] bytes = new byte[16];
        // Loading the security providers of the JDK would add 50 ms to the start-up time.
        try (InputStream random = new FileInputStream("/dev/urandom")) {
            if (random.readNBytes(bytes, 0, bytes.length) < bytes.length) {
                new SecureRandom().nextBytes(bytes);
            }
        } catch (IOException e) {
            new SecureRandom().nextBytes(bytes);
        }
        return of(bytes);
    }
}
