package io.tachograph.bootstrap;

/**
 * One call as seen from elsewhere: from another thread of this process or from another process.
 * Immutable. It is the parent of what is recorded there.
 */
public final class Context {
    /** {@link #segment} of a context that came from another process. */
    public static final long REMOTE = -1;

    private static final int TRACEPARENT_LENGTH = 55;
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private final long traceHigh;
    private final long traceLow;
    private final long span;
    private final long segment;

    /**
     * @param traceHigh first half of the trace id
     * @param traceLow second half
     * @param span id of the call
     * @param segment number of the segment of this session with which the trace began, {@link
     *     #REMOTE} if it did not begin here; it lets the sender write a short number instead of 16
     *     bytes
     */
    private Context(long traceHigh, long traceLow, long span, long segment) {
        this.traceHigh = traceHigh;
        this.traceLow = traceLow;
        this.span = span;
        this.segment = segment;
    }

    /**
     * A call of this session, in a trace that began with {@code segment}, or, for {@link #REMOTE},
     * elsewhere.
     */
    public static Context local(long traceHigh, long traceLow, long span, long segment) {
        return new Context(traceHigh, traceLow, span, segment);
    }

    public long traceHigh() {
        return traceHigh;
    }

    public long traceLow() {
        return traceLow;
    }

    public long span() {
        return span;
    }

    public long segment() {
        return segment;
    }

    /**
     * Reads a {@code traceparent} header (W3C Trace Context, level 1).
     *
     * @param header {@code 00-<32 hex>-<16 hex>-<2 hex>}; a later version may have more behind it
     * @return null for null and for anything the recommendation calls invalid
     */
    public static Context parse(String header) {
        if (header == null || header.length() < TRACEPARENT_LENGTH) {
            return null;
        }
        boolean longer = header.length() > TRACEPARENT_LENGTH;
        int version = hex(header.charAt(0)) << 4 | hex(header.charAt(1));
        if (version < 0
                || version == 0xff
                || longer && (version == 0 || header.charAt(TRACEPARENT_LENGTH) != '-')) {
            return null;
        }
        if (header.charAt(2) != '-' || header.charAt(35) != '-' || header.charAt(52) != '-') {
            return null;
        }
        if (!isHex(header, 3, 35) || !isHex(header, 36, 52) || !isHex(header, 53, 55)) {
            return null;
        }
        long high = parseHex(header, 3);
        long low = parseHex(header, 19);
        long span = parseHex(header, 36);
        return (high | low) == 0 || span == 0 ? null : new Context(high, low, span, REMOTE);
    }

    /**
     * The header to send: {@code 00-<trace>-<span>-01}. Always sampled: nothing here is sampled
     * away.
     */
    public String traceparent() {
        char[] text = new char[TRACEPARENT_LENGTH];
        text[0] = text[1] = '0';
        text[2] = text[35] = text[52] = '-';
        writeHex(text, 3, traceHigh);
        writeHex(text, 19, traceLow);
        writeHex(text, 36, span);
        text[53] = '0';
        text[54] = '1';
        return new String(text);
    }

    private static int hex(char c) {
        if (c >= '0' && c <= '9') {
            return c - '0';
        }
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    }

    private static boolean isHex(String text, int from, int to) {
        for (int at = from; at < to; at++) {
            if (hex(text.charAt(at)) < 0) {
                return false;
            }
        }
        return true;
    }

    private static long parseHex(String text, int from) {
        long value = 0;
        for (int at = from; at < from + 16; at++) {
            value = value << 4 | hex(text.charAt(at));
        }
        return value;
    }

    private static void writeHex(char[] text, int from, long value) {
        for (int at = 0; at < 16; at++) {
            text[from + at] = HEX[(int) (value >>> 60 - 4 * at) & 15];
        }
    }
}
