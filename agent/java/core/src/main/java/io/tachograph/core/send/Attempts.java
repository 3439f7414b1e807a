package io.tachograph.core.send;

/**
 * Decides when the link connects next, how long it waits for the server's greeting (WELCOME), and
 * whether a program that ends may still expect a connection. Before and after: {@link Link}.
 */
final class Attempts {
    /** Longest wait for the greeting, from the start of the TCP connection. */
    static final long GREETING_NANOS = 5_000_000_000L;

    /**
     * Of the time between two steps, at most this much counts as waiting for the server. Longer
     * times are not caused by the server: the sender may be late on a busy machine, or a step may
     * load the classes of TLS.
     */
    private static final long STEP_NANOS_MAX = 100_000_000;

    /** Pause before the next attempt after a SILENT failure, when the program ends. */
    private static final long ENDING_NANOS = 100_000_000;

    /** The result of a failed attempt or a lost connection. */
    enum Failure {
        /** The server was reached, and then closed the connection or did not answer in time. */
        SILENT,
        /** The server refuses the connection for now. An attempt after the pause may succeed. */
        BUSY,
        /**
         * Another attempt would also fail, unless the server or a setting changes: no program
         * listens at the address, a certificate is not trusted, the token is refused.
         */
        LASTING
    }

    private long due;
    private long dueAtEnd;
    private boolean isHopeful = true;
    private boolean isEnding;
    private long steppedAt;
    private long waitedNanos;

    Attempts(long now) {
        this.due = now;
        this.dueAtEnd = now;
    }

    /** @param isEnding true while the program ends and waits for the server */
    void ending(boolean isEnding) {
        this.isEnding = isEnding;
    }

    boolean isDue(long now) {
        return now - (isEnding ? dueAtEnd : due) >= 0;
    }

    /**
     * True if a connection may open before this time.
     *
     * @param isResting true if no attempt is in progress
     */
    boolean mayOpen(long until, boolean isResting) {
        return isHopeful && (!isResting || dueAtEnd - until < 0);
    }

    void begin(long now) {
        steppedAt = now;
        waitedNanos = 0;
    }

    /** Called when the TCP connection is established. */
    void reached() {
        isHopeful = true;
    }

    /** Called at each step of an attempt. */
    boolean isTooSlow(long now) {
        waitedNanos += Math.min(now - steppedAt, STEP_NANOS_MAX);
        steppedAt = now;
        return waitedNanos > GREETING_NANOS;
    }

    void failed(Failure failure, long now, long pauseNanos) {
        isHopeful = failure != Failure.LASTING;
        due = now + pauseNanos;
        dueAtEnd = failure == Failure.SILENT ? now + ENDING_NANOS : due;
    }
}
