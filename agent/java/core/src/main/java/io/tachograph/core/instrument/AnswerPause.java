package io.tachograph.core.instrument;

/**
 * How soon an answer to PROBES may follow the one before ({@code docs/format/wire.md}): after 5 s
 * where it tells how things go on, after 0.2 s where it has news, twice as long each time up to 5
 * s. Who has said nothing for 5 s begins with 0.2 s again.
 *
 * <p>Times are as {@code System.nanoTime()}.
 */
final class AnswerPause {
    static final long ROUTINE_NANOS = 5_000_000_000L;
    static final long NEWS_NANOS = 200_000_000;

    private boolean hasAnswered;
    private long answeredAt;
    private long newsNanos = NEWS_NANOS;

    /** There is a new question, which is answered at once. */
    void restart() {
        hasAnswered = false;
    }

    void answered(long now) {
        boolean isSoon = hasAnswered && now - answeredAt < ROUTINE_NANOS;
        newsNanos = isSoon ? Math.min(ROUTINE_NANOS, 2 * newsNanos) : NEWS_NANOS;
        hasAnswered = true;
        answeredAt = now;
    }

    /** Until the next answer may go, negative or zero if it may now. */
    long left(boolean hasNews, long now) {
        return hasAnswered ? answeredAt + (hasNews ? newsNanos : ROUTINE_NANOS) - now : 0;
    }
}
