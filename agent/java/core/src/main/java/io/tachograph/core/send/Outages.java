package io.tachograph.core.send;

import io.tachograph.core.log.AgentLog;
import io.tachograph.core.log.Messages;

import java.util.concurrent.TimeUnit;

/**
 * Logs when the server is lost, and when it is connected again, with the number of records dropped
 * in between. In the minute after a line about an outage, further outages are only counted. One
 * line after that minute reports them, even if they have already ended.
 *
 * <p>Before: {@link Link}.
 */
final class Outages {
    private static final long LINE_NANOS = 60_000_000_000L;

    private final AgentLog log;
    private final Totals totals;
    private final Drops drops;
    private boolean isOut;
    private boolean isTold;
    private boolean wasConnected;

    private String refusal = "";

    /** {@code System.nanoTime()} from which the next line may be written. */
    private long quietUntil;

    private boolean isQuiet;

    /** Number of outages since the last line about outages. */
    private int untold;

    private long beganAt;
    private long[] droppedBefore = {0, 0, 0};

    Outages(AgentLog log, Totals totals) {
        this.log = log;
        this.totals = totals;
        this.drops = new Drops(log, totals);
    }

    /**
     * Called when a connection, or an attempt to connect, has failed.
     *
     * @param wasOpen true if the connection was open
     * @param isOfToken true if the server refuses the token. A new reason is logged at once,
     *     because the user must act
     * @param now as {@code System.nanoTime()}
     */
    void failed(String server, String why, boolean wasOpen, boolean isOfToken, long now) {
        if (!isOut || wasOpen) {
            isOut = true;
            isTold = false;
            beganAt = now;
            if (untold++ == 0) {
                droppedBefore = dropped();
            }
        }
        if (isOfToken && !why.equals(refusal)) {
            refusal = why;
        } else if (isTold || isQuiet && now - quietUntil < 0) {
            return;
        }
        String cause =
                why
                        + (untold > 1
                                ? ", " + untold + " times since the last message about it"
                                : "");
        log.say(
                wasConnected
                        ? Messages.serverLost(server, cause)
                        : Messages.serverUnreachable(server, cause));
        isTold = true;
        told(now);
    }

    void connected(String server, long now) {
        if (!isOut) {
            log.say(Messages.connected(server));
        } else if (isTold) {
            long seconds = TimeUnit.NANOSECONDS.toSeconds(now - beganAt);
            log.say(
                    wasConnected
                            ? Messages.reconnectedAfter(server, seconds, newlyDropped())
                            : Messages.connectedAfter(server, seconds, newlyDropped()));
        }
        wasConnected = true;
        isOut = false;
        isTold = false;
    }

    /**
     * Logs dropped calls, and ended outages that have no line of their own. While connected, it
     * writes no line in the minute after a line. At the end of the program, it writes at once.
     *
     * @param isLast true if the program ends
     */
    void catchUp(String server, boolean isLast, long now) {
        boolean isEarly = !isLast && isQuiet && now - quietUntil < 0;
        if (!isOut && untold > 0 && !isEarly) {
            String times = untold == 1 ? Messages.ONCE : Messages.times(untold);
            log.say(Messages.reconnected(server, times, newlyDropped()));
            told(now);
        }
        // If a line about outages is pending, that line will include the dropped calls.
        if (isLast || !isOut && untold == 0) {
            drops.look(isLast, now);
        }
    }

    private void told(long now) {
        isQuiet = true;
        quietUntil = now + LINE_NANOS;
        untold = 0;
    }

    private String newlyDropped() {
        long[] now = dropped();
        long calls = now[0] - droppedBefore[0];
        long samples = now[1] - droppedBefore[1];
        long entries = now[2] - droppedBefore[2];
        droppedBefore = now;
        drops.exclude(calls);
        return calls + samples + entries == 0
                ? Messages.DROPPED_NOTHING
                : Messages.droppedSome(calls, samples, entries);
    }

    /** Dropped calls, samples and entries, without records that failed in code of the program. */
    private long[] dropped() {
        long entries = totals.entriesDropped() - totals.entriesFailed();
        return new long[] {totals.callsDropped(), totals.samplesDropped, entries};
    }
}
