package io.tachograph.core.send;

/**
 * The counts of the sender since the start of the process. The sender writes them, the samplers
 * read them.
 */
public final class Totals {
    volatile long callsSent;
    volatile long callsDroppedInRings;
    volatile long callsDroppedInQueue;
    volatile long samplesSent;
    volatile long samplesDropped;
    volatile long entriesSent;
    volatile long entriesDropped;
    volatile long entriesDroppedInRings;
    volatile long entriesFailed;
    volatile long attributesDropped;
    volatile long attributesDroppedInRings;
    volatile long recordsRejected;
    volatile long bytesSent;
    volatile long connects;
    volatile long bytesQueued;
    volatile boolean connected;

    /** Number of calls whose exit was added to a frame. */
    public long callsSent() {
        return callsSent;
    }

    /**
     * Number of dropped calls. The causes are: no free buffer, a full ring or queue, a segment with
     * too many calls, an internal error, and a frame that the server refuses permanently.
     */
    public long callsDropped() {
        return callsDroppedInRings + callsDroppedInQueue;
    }

    public long samplesSent() {
        return samplesSent;
    }

    public long samplesDropped() {
        return samplesDropped;
    }

    /** Number of declared records that were added to a frame. */
    public long entriesSent() {
        return entriesSent;
    }

    /**
     * Number of dropped declared records. The causes are: no free buffer, a full ring or queue, an
     * internal error, a frame that the server refuses permanently, too many record types, a full
     * dictionary, a server that does not support declared records, and values that could not be
     * read ({@link #entriesFailed}).
     */
    public long entriesDropped() {
        return entriesDropped + entriesDroppedInRings + entriesFailed;
    }

    /** Number of declared records that could not be created, mostly because the program threw. */
    public long entriesFailed() {
        return entriesFailed;
    }

    public long attributesDropped() {
        return attributesDropped + attributesDroppedInRings;
    }

    /** Number of REJECT frames. The server sends at most 16 for a frame with records. */
    public long recordsRejected() {
        return recordsRejected;
    }

    /** Includes repeated frames. */
    public long bytesSent() {
        return bytesSent;
    }

    public long connects() {
        return connects;
    }

    public long bytesQueued() {
        return bytesQueued;
    }

    public boolean connected() {
        return connected;
    }
}
