package io.tachograph.core.instrument;

/**
 * Pause between two answers to PROBES ({@code docs/format/wire.md}): 5 s for updates of counts; 0.2
 * s for news, doubled each time up to 5 s. After 5 s without an answer it starts again at 0.2 s.
 *
 * <p>Times are as {@code System.nanoTime()}.
 */
final class AnswerPause {
    static final long ROUTINE_NANOS = 5_000_000_000L;
    static final long NEWS_NANOS = 200_000_000;

    private boolean hasAnswered;
    private long answeredAt;
    private long newsNanos = NEWS_NANOS;

    /** A new PROBES arrived, which is answered at once. */
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
