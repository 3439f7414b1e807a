package io.tachograph.core.send;

import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.Wire;

import java.util.ArrayDeque;

/**
 * Records become numbered DATA frames here and stay until the server has acknowledged them, over
 * all reconnects. Bounded in bytes; a record that finds no room is refused, and the caller counts
 * what was in it.
 *
 * <p>Before: {@link RingReader}. After: {@link Link}.
 */
final class Outbox {
    /** A frame is closed when it has reached this; a single record may be longer. */
    private static final int FRAME_BYTES = 65_536;

    /** What a frame in the queue costs beside its bytes. */
    private static final int FRAME_OVERHEAD = 64;

    private final Dictionary dictionary;
    private final long bytesMax;
    private final Bytes frame = new Bytes(FRAME_BYTES + 8_192);
    private final Bytes record = new Bytes(8_192);
    private final ArrayDeque<Sent> unacknowledged = new ArrayDeque<>();
    private final ArrayDeque<Sent> waiting = new ArrayDeque<>();
    private long seq;
    private long base;
    private boolean open;
    private int calls;
    private int samples;
    private long bytes;

    /** A frame, ready to be sent, perhaps for the second time. */
    static final class Sent {
        final long seq;
        final byte[] frame;

        /** The dictionary's size when the frame was closed: so much must be sent before it. */
        final int dictionarySize;

        final int calls;
        final int samples;

        Sent(long seq, byte[] frame, int dictionarySize, int calls, int samples) {
            this.seq = seq;
            this.frame = frame;
            this.dictionarySize = dictionarySize;
            this.calls = calls;
            this.samples = samples;
        }
    }

    Outbox(Dictionary dictionary, long bytesMax) {
        this.dictionary = dictionary;
        this.bytesMax = bytesMax;
    }

    /** No record can be taken now. */
    boolean isFull() {
        return bytes + frame.size() >= bytesMax;
    }

    /** Bytes of all frames that are not acknowledged. */
    long bytes() {
        return bytes;
    }

    /**
     * Begins a record.
     *
     * @param at time of the record, ns since the epoch: the base of the frame, if it is the frame's
     *     first
     * @return where its content is to be written; then comes {@link #end}
     */
    Bytes begin(long at) {
        if (!open) {
            Frame.begin(frame).varint(++seq).u64(at);
            base = at;
            open = true;
            calls = 0;
            samples = 0;
        }
        return record.clear();
    }

    /** Base of the frame that is being filled, valid after {@link #begin}. */
    long base() {
        return base;
    }

    /**
     * Puts the record into the frame. @param callsEnded how many calls end in it; @param samplesIn
     * how many samples it has
     */
    void end(int tag, int callsEnded, int samplesIn) {
        frame.reserve(record.size() + 16); // fails, if it must, before the first byte
        frame.u8(tag).varint(record.size()).raw(record);
        calls += callsEnded;
        samples += samplesIn;
        if (frame.size() >= FRAME_BYTES) {
            close();
        }
    }

    /** Closes the frame at hand, so that it can be sent. */
    void close() {
        if (open) {
            Frame.finish(frame, Wire.DATA);
            waiting.add(new Sent(seq, frame.copy(), dictionary.size(), calls, samples));
            bytes += frame.size() + FRAME_OVERHEAD;
            frame.clear();
            open = false;
        }
    }

    /** Number of the last frame that was closed. */
    long lastSeq() {
        return open ? seq - 1 : seq;
    }

    /** The next frame to send, null if there is none. It stays the next one until {@link #sent}. */
    Sent next() {
        return waiting.peek();
    }

    void sent() {
        unacknowledged.add(waiting.remove());
    }

    /** All frames up to {@code upTo} are on the server's disk. */
    void acknowledge(long upTo) {
        forget(unacknowledged, upTo);
        forget(waiting, upTo); // sent on an earlier connection, acknowledged by WELCOME on this one
    }

    private void forget(ArrayDeque<Sent> frames, long upTo) {
        while (!frames.isEmpty() && frames.peek().seq <= upTo) {
            bytes -= frames.remove().frame.length + FRAME_OVERHEAD;
        }
    }

    boolean isAcknowledged(long upTo) {
        return (unacknowledged.isEmpty() || unacknowledged.peek().seq > upTo)
                && (waiting.isEmpty() || waiting.peek().seq > upTo);
    }

    /** The connection is gone: everything without an acknowledgement is to be sent again. */
    void rewind() {
        while (!unacknowledged.isEmpty()) {
            waiting.addFirst(unacknowledged.removeLast());
        }
    }

    /** Throws away all closed frames: the server refuses them for good. */
    void discard(Totals totals) {
        rewind();
        for (Sent lost : waiting) {
            totals.callsDroppedInQueue += lost.calls;
            totals.samplesDropped += lost.samples;
        }
        acknowledge(Long.MAX_VALUE);
    }
}
