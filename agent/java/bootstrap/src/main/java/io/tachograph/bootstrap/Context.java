package io.tachograph.bootstrap;

/**
 * An immutable reference to a call, as the parent of calls on other threads or in other processes.
 */
public final class Context {
    /** Value of {@link #segment} if the trace began in another process or is not recorded. */
    public static final long REMOTE = -1;

    private static final int TRACEPARENT_LENGTH = 55;
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private final long traceHigh;
    private final long traceLow;
    private final long span;
    private final long segment;
    private final Origin origin;

    private enum Origin {
        /** This process records the trace. */
        KEPT,
        /** This process does not record the trace ({@link Traces}). */
        UNSAMPLED,
        /** Read from a header with the sampled flag. */
        HEADER,
        /** Read from a header without the sampled flag. */
        HEADER_UNSAMPLED
    }

    /**
     * @param traceHigh first half of the trace id
     * @param traceLow second half of the trace id
     * @param span id of the call
     * @param segment number of the segment of this session with which the trace began, or {@link
     *     #REMOTE} if the trace began in another process or is not recorded. With a segment number
     *     the sender writes a short number instead of the 16 bytes of a trace id.
     */
    private Context(long traceHigh, long traceLow, long span, long segment, Origin origin) {
        this.traceHigh = traceHigh;
        this.traceLow = traceLow;
        this.span = span;
        this.segment = segment;
        this.origin = origin;
    }

    /**
     * A recorded call of this session.
     *
     * @param segment number of the segment with which its trace began; {@link #REMOTE} if the trace
     *     began in another process
     */
    public static Context local(long traceHigh, long traceLow, long span, long segment) {
        return new Context(traceHigh, traceLow, span, segment, Origin.KEPT);
    }

    /** A call of a trace that is not recorded. */
    static Context unsampled(long traceHigh, long traceLow, long span) {
        return new Context(traceHigh, traceLow, span, REMOTE, Origin.UNSAMPLED);
    }

    /**
     * True if this context was read from a header. Calls with this parent are entry points of this
     * process.
     */
    public boolean isFromHeader() {
        return origin == Origin.HEADER || origin == Origin.HEADER_UNSAMPLED;
    }

    /**
     * True if the trace is recorded. For a context from a header, this is the decision of the other
     * process.
     */
    public boolean isSampled() {
        return origin == Origin.KEPT || origin == Origin.HEADER;
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
     * @param header {@code 00-<32 hex>-<16 hex>-<2 hex>}; later versions may append fields
     * @return null for null and for a header that the W3C recommendation calls invalid
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
        boolean isSampled = (hex(header.charAt(54)) & 1) == 1;
        Origin origin = isSampled ? Origin.HEADER : Origin.HEADER_UNSAMPLED;
        return (high | low) == 0 || span == 0 ? null : new Context(high, low, span, REMOTE, origin);
    }

    /**
     * The header to send: {@code 00-<trace>-<span>-01}. If this process does not record the trace,
     * the header ends with {@code 00}. The sampled flag of an incoming header is not copied.
     */
    public String traceparent() {
        char[] text = new char[TRACEPARENT_LENGTH];
        text[0] = text[1] = '0';
        text[2] = text[35] = text[52] = '-';
        writeHex(text, 3, traceHigh);
        writeHex(text, 19, traceLow);
        writeHex(text, 36, span);
        text[53] = '0';
        text[54] = origin == Origin.UNSAMPLED ? '0' : '1';
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
