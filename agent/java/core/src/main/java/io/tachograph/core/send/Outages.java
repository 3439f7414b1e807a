package io.tachograph.core.send;

import io.tachograph.core.log.AgentLog;

import java.util.concurrent.TimeUnit;

/**
 * What the log says of a server that goes and comes: each outage, but one a minute at most, and its
 * end with what was dropped meanwhile. Who reads the last line knows whether there is a connection,
 * but for the first minute of an outage that followed the one before within a minute; such a one
 * that is over by then is told afterwards.
 *
 * <p>Before: {@link Link}.
 */
final class Outages {
    private static final long LINE_NANOS = 60_000_000_000L;

    private final AgentLog log;
    private final Totals totals;
    private boolean isOut;
    private boolean isTold;
    private boolean wasConnected;

    /** Past this the next line may come. */
    private long quietUntil;

    private boolean isQuiet;

    /** Outages since the last one that was told. */
    private int untold;

    private long beganAt;
    private long droppedBefore;

    Outages(AgentLog log, Totals totals) {
        this.log = log;
        this.totals = totals;
    }

    /**
     * A connection, or a try to make one, has failed.
     *
     * @param wasOpen it was a connection
     * @param now as {@code System.nanoTime()}
     */
    void failed(String server, String why, boolean wasOpen, long now) {
        if (!isOut || wasOpen) {
            isOut = true;
            isTold = false;
            beganAt = now;
            if (untold++ == 0) {
                droppedBefore = dropped();
            }
        }
        if (isTold || isQuiet && now - quietUntil < 0) {
            return;
        }
        log.say(
                (wasConnected ? "lost the server " : "cannot reach the server ")
                        + server
                        + ": "
                        + why
                        + (untold > 1 ? ", " + untold + " times since the last line" : "")
                        + "; the program goes on, the agent keeps trying");
        isTold = true;
        told(now);
    }

    /** There is a connection. */
    void connected(String server, long now) {
        if (!isOut) {
            log.say("connected to " + server);
        } else if (isTold) {
            log.say(
                    (wasConnected ? "connected again to " : "connected to ")
                            + server
                            + " after "
                            + TimeUnit.NANOSECONDS.toSeconds(now - beganAt)
                            + " s; "
                            + droppedMeanwhile());
        }
        wasConnected = true;
        isOut = false;
        isTold = false;
    }

    /**
     * While there is a connection: tells of outages that came too soon after a line, when the next
     * may come.
     *
     * @param isLast the program ends
     */
    void catchUp(String server, boolean isLast, long now) {
        if (isOut || untold == 0 || !isLast && isQuiet && now - quietUntil < 0) {
            return;
        }
        log.say(
                "connected to "
                        + server
                        + " again; it was away "
                        + (untold == 1 ? "once" : untold + " times")
                        + " since the last line; "
                        + droppedMeanwhile());
        told(now);
    }

    private void told(long now) {
        isQuiet = true;
        quietUntil = now + LINE_NANOS;
        untold = 0;
    }

    private String droppedMeanwhile() {
        long count = dropped() - droppedBefore;
        return (count == 0 ? "nothing was" : count + " records were") + " dropped meanwhile";
    }

    /** Without records that the program itself could not make. */
    private long dropped() {
        long entries = totals.entriesDropped() - totals.entriesFailed();
        return totals.callsDropped() + entries + totals.samplesDropped;
    }
}
