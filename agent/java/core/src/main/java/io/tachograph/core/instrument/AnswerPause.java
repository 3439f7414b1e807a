package io.tachograph.core.instrument;

/**
 * The pause between two answers to PROBES ({@code docs/format/wire.md}). If there is news, such as
 * a loaded class that a rule matches or a moved operation, the pause begins at 0.2 s and doubles
 * with each answer up to 5 s. After 5 s without an answer, the pause begins at 0.2 s again. Without
 * news, the pause is 5 s.
 *
 * <p>Times are values of {@code System.nanoTime()}.
 */
final class AnswerPause {
    static final long ROUTINE_NANOS = 5_000_000_000L;
    static final long NEWS_NANOS = 200_000_000;

    private boolean hasAnswered;
    private long answeredAt;
    private long newsNanos = NEWS_NANOS;

    /** Called after a new PROBES, which is answered at once. */
    void restart() {
        hasAnswered = false;
    }

    void answered(long now) {
        boolean isSoon = hasAnswered && now - answeredAt < ROUTINE_NANOS;
        newsNanos = isSoon ? Math.min(ROUTINE_NANOS, 2 * newsNanos) : NEWS_NANOS;
        hasAnswered = true;
        answeredAt = now;
    }

    /** Time until the next answer may be sent; negative or zero if it may be sent now. */
    long left(boolean hasNews, long now) {
        return hasAnswered ? answeredAt + (hasNews ? newsNanos : ROUTINE_NANOS) - now : 0;
    }
}
