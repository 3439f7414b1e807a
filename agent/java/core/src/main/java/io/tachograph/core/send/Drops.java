package io.tachograph.core.send;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.log.Messages;

/**
 * Logs the number of dropped calls, with the remedies against full buffers: at most once per
 * minute, and at the end of the program. Calls dropped during an outage cause no line here, because
 * the line about the outage reports them.
 *
 * <p>Before: {@link Outages}.
 */
final class Drops {
    private static final long LINE_NANOS = 60_000_000_000L;
    private static final String REMEDY =
            "record fewer methods (include, exclude), or raise buffer or queue, or set"
                    + " when_full=block";

    private final AgentLog log;
    private final Totals totals;

    private long told;

    private boolean isQuiet;

    /** {@code System.nanoTime()} from which the next line may be written. */
    private long quietUntil;

    Drops(AgentLog log, Totals totals) {
        this.log = log;
        this.totals = totals;
    }

    /**
     * Called periodically while there is no outage, and at the end of the program.
     *
     * @param now as {@code System.nanoTime()}
     */
    void look(boolean isLast, long now) {
        long calls = totals.callsDropped();
        if (calls == told || !isLast && isQuiet && now - quietUntil < 0) {
            return;
        }
        told = calls;
        isQuiet = true;
        quietUntil = now + LINE_NANOS;
        log.say(Messages.callsDropped(calls, REMEDY));
    }

    /** Called after the line about an outage has reported these calls. */
    void exclude(long calls) {
        told = Math.min(told + calls, totals.callsDropped());
    }
}
