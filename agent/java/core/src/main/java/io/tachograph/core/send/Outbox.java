package io.tachograph.core.send;

import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.SegmentRecord;
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
    private final boolean waits;
    private final Bytes frame = new Bytes(FRAME_BYTES + 8_192);
    private final Bytes record = new Bytes(8_192);
    private final ArrayDeque<Sent> unacknowledged = new ArrayDeque<>();
    private final ArrayDeque<Sent> waiting = new ArrayDeque<>();
    private long seq;
    private long base;
    private boolean open;
    private final Bytes entryRecords = new Bytes(1_024);
    private long entryBase;
    private int entries;
    private int calls;
    private int samples;
    private long bytes;

    /** A frame, ready to be sent, perhaps for the second time. */
    static final class Sent {
        final long seq;
        final byte[] frame;

        /** The dictionary's size when the frame was closed: so much must be sent before it. */
        final int dictionarySize;

        /** The same of the record types; 0 for a frame without records of declared types. */
        final int recordTypesSize;

        final int calls;
        final int samples;

        /** Such a frame has nothing else, for not every server takes them. */
        final int entries;

        Sent(long seq, byte[] frame, int[] dictionarySizes, int calls, int samples, int entries) {
            this.seq = seq;
            this.frame = frame;
            this.dictionarySize = dictionarySizes[0];
            this.recordTypesSize = dictionarySizes[1];
            this.calls = calls;
            this.samples = samples;
            this.entries = entries;
        }
    }

    Outbox(Dictionary dictionary, long bytesMax) {
        this(dictionary, bytesMax, false);
    }

    /**
     * @param waits when full, the rings are left as they are, so that the program waits, too; else
     *     what is in them is dropped and counted
     */
    Outbox(Dictionary dictionary, long bytesMax, boolean waits) {
        this.dictionary = dictionary;
        this.bytesMax = bytesMax;
        this.waits = waits;
    }

    /** Nothing is to be read from the rings now. */
    boolean mustWait() {
        return waits && isFull();
    }

    /** No record can be taken now. */
    boolean isFull() {
        return bytes + frame.size() + entryRecords.size() >= bytesMax;
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
            closeFrame();
        }
    }

    /**
     * Puts a part of a segment into the frame.
     *
     * @param offset from its clock to the epoch, ns
     */
    void put(SegmentRecord part, SegmentRecord.Head head, long offset, Totals totals) {
        long start = part.start() + offset;
        Bytes out = begin(start);
        part.write(head, start - base, out);
        end(Wire.TAG_SEGMENT, part.exits(), 0);
        totals.callsSent += part.exits();
    }

    /**
     * Begins a record of a declared type. @param at its time, ns since the epoch @return where its
     * content is to be written; then comes {@link #endEntry}
     */
    Bytes beginEntry(long at) {
        if (entries == 0) {
            entryBase = at;
            entryRecords.clear();
        }
        return record.clear();
    }

    /** Base of the frame of these records, valid after {@link #beginEntry}. */
    long entryBase() {
        return entryBase;
    }

    /** Keeps the record until the frame is closed. */
    void endEntry() {
        entryRecords.reserve(record.size() + 16); // fails, if it must, before the first byte
        entryRecords.u8(Wire.TAG_RECORD).varint(record.size()).raw(record);
        entries++;
        if (entryRecords.size() >= FRAME_BYTES) {
            close();
        }
    }

    /** Closes what is at hand, so that it can be sent. Numbers rise in the order of sending. */
    void close() {
        closeFrame();
        if (entries > 0) {
            Frame.begin(frame).varint(++seq).u64(entryBase).raw(entryRecords);
            Frame.finish(frame, Wire.DATA);
            queue(new int[] {dictionary.size(), dictionary.recordTypes().size()}, 0, 0, entries);
            entries = 0;
            entryRecords.clear();
        }
    }

    private void closeFrame() {
        if (open) {
            Frame.finish(frame, Wire.DATA);
            queue(new int[] {dictionary.size(), 0}, calls, samples, 0);
            open = false;
        }
    }

    private void queue(int[] dictionarySizes, int callsEnded, int samplesIn, int entriesIn) {
        byte[] copy = frame.copy();
        waiting.add(new Sent(seq, copy, dictionarySizes, callsEnded, samplesIn, entriesIn));
        bytes += copy.length + FRAME_OVERHEAD;
        frame.clear();
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

    /** The next frame is not for this server: it goes, and what is in it is counted. */
    void leaveOut(Totals totals) {
        Sent lost = waiting.remove();
        bytes -= lost.frame.length + FRAME_OVERHEAD;
        totals.entriesDropped += lost.entries;
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
            totals.entriesDropped += lost.entries;
        }
        acknowledge(Long.MAX_VALUE);
    }
}
