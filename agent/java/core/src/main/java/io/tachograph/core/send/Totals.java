package io.tachograph.core.send;

/**
 * What the sender counted since the process began. Written by the sender only, read by the
 * samplers.
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

    /** Calls whose exit was put into a frame. */
    public long callsSent() {
        return callsSent;
    }

    /** Calls that were left out: no room in a ring, or none in the queue of frames. */
    public long callsDropped() {
        return callsDroppedInRings + callsDroppedInQueue;
    }

    public long samplesSent() {
        return samplesSent;
    }

    public long samplesDropped() {
        return samplesDropped;
    }

    /** Records of declared types that were put into a frame. */
    public long entriesSent() {
        return entriesSent;
    }

    /** Those that were left out: no room, a server that takes none, or {@link #entriesFailed}. */
    public long entriesDropped() {
        return entriesDropped + entriesDroppedInRings + entriesFailed;
    }

    /** Those whose values could not be read: code of the program's threw. */
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

    /** Bytes written to the connection, repetitions included. */
    public long bytesSent() {
        return bytesSent;
    }

    /** Connections that were made. */
    public long connects() {
        return connects;
    }

    /** Bytes of frames that are not acknowledged. */
    public long bytesQueued() {
        return bytesQueued;
    }

    public boolean connected() {
        return connected;
    }
}
