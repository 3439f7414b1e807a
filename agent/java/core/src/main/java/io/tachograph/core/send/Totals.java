package io.tachograph.core.send;

/**
 * The sender's counts since the process began. Written by the sender only, read by the samplers.
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

    /** Calls whose exit was added to a frame. */
    public long callsSent() {
        return callsSent;
    }

    /** Dropped calls: no room in a ring, or in the queue of frames. */
    public long callsDropped() {
        return callsDroppedInRings + callsDroppedInQueue;
    }

    public long samplesSent() {
        return samplesSent;
    }

    public long samplesDropped() {
        return samplesDropped;
    }

    /** Records of declared types that were added to a frame. */
    public long entriesSent() {
        return entriesSent;
    }

    /** Dropped records: no room, not supported by the server, or {@link #entriesFailed}. */
    public long entriesDropped() {
        return entriesDropped + entriesDroppedInRings + entriesFailed;
    }

    /** Records whose values could not be read because code of the program threw. */
    public long entriesFailed() {
        return entriesFailed;
    }

    public long attributesDropped() {
        return attributesDropped + attributesDroppedInRings;
    }

    /** Records that the server refused. */
    public long recordsRejected() {
        return recordsRejected;
    }

    /** Bytes written to the connection, including repeated frames. */
    public long bytesSent() {
        return bytesSent;
    }

    /** Connections established. */
    public long connects() {
        return connects;
    }

    /** Bytes of unacknowledged frames. */
    public long bytesQueued() {
        return bytesQueued;
    }

    public boolean connected() {
        return connected;
    }
}
