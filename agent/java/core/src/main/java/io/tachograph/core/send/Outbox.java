package io.tachograph.core.send;

import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.SegmentRecord;
import io.tachograph.core.wire.Wire;

import java.util.ArrayDeque;

/**
 * Packs records into numbered DATA frames and keeps the frames until the server acknowledges them,
 * across reconnects. The size is bounded in bytes: callers ask {@link #isFull} before each record.
 * If the outbox is full, they drop and count the record.
 *
 * <p>Before: {@link RingReader}. After: {@link Link}.
 */
final class Outbox {
    /** A frame is closed when it reaches this size. A single record may be larger. */
    private static final int FRAME_BYTES = 65_536;

    /** Memory of a queued frame in addition to its content, in bytes. */
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

    /** A frame to send, possibly again. */
    static final class Sent {
        final long seq;
        final byte[] frame;

        /**
         * Size of the dictionary's definitions when the frame was closed, in bytes. These
         * definitions must be sent before the frame.
         */
        final int dictionarySize;

        /**
         * Size of the definitions of record types when the frame was closed, in bytes; 0 for a
         * frame without declared records.
         */
        final int recordTypesSize;

        final int calls;
        final int samples;

        /**
         * Number of declared records in the frame. A frame with declared records has no other
         * records, because some servers do not support declared records.
         */
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
     * @param waits true if the rings are not read while the queue is full, so that the program
     *     waits; otherwise their content is dropped and counted
     */
    Outbox(Dictionary dictionary, long bytesMax, boolean waits) {
        this.dictionary = dictionary;
        this.bytesMax = bytesMax;
        this.waits = waits;
    }

    boolean mustWait() {
        return waits && isFull();
    }

    boolean isFull() {
        return bytes + frame.size() + entryRecords.size() >= bytesMax;
    }

    /** Memory of all closed frames that are not acknowledged, in bytes. */
    long bytes() {
        return bytes;
    }

    /**
     * Begins a record. The caller must then call {@link #end}.
     *
     * @param at time of the record, ns since the epoch; it becomes the base time of the frame if
     *     this is the first record of the frame
     * @return the buffer for the content of the record
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

    /** The base time of the current frame, ns since the epoch; valid after {@link #begin}. */
    long base() {
        return base;
    }

    /**
     * @param callsEnded number of calls that end in the record
     * @param samplesIn number of samples in the record
     */
    void end(int tag, int callsEnded, int samplesIn) {
        frame.reserve(record.size() + 16); // if this throws, nothing is written yet
        frame.u8(tag).varint(record.size()).raw(record);
        calls += callsEnded;
        samples += samplesIn;
        if (frame.size() >= FRAME_BYTES) {
            closeFrame();
        }
    }

    /** @param offset from the clock of the part to the epoch, ns */
    void put(SegmentRecord part, SegmentRecord.Head head, long offset, Totals totals) {
        long start = part.start() + offset;
        Bytes out = begin(start);
        part.write(head, start - base, out);
        end(Wire.TAG_SEGMENT, part.exits(), 0);
        totals.callsSent += part.exits();
    }

    /**
     * Begins a declared record. The caller must then call {@link #endEntry}.
     *
     * @param at time of the record, ns since the epoch
     * @return the buffer for the content of the record
     */
    Bytes beginEntry(long at) {
        if (entries == 0) {
            entryBase = at;
            entryRecords.clear();
        }
        return record.clear();
    }

    /** The base time of the frame with declared records; valid after {@link #beginEntry}. */
    long entryBase() {
        return entryBase;
    }

    void endEntry() {
        entryRecords.reserve(record.size() + 16); // if this throws, nothing is written yet
        entryRecords.u8(Wire.TAG_RECORD).varint(record.size()).raw(record);
        entries++;
        if (entryRecords.size() >= FRAME_BYTES) {
            close();
        }
    }

    /**
     * Closes the open frames, so that they can be sent. The numbers of the frames increase in the
     * order of sending.
     */
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

    long lastSeq() {
        return open ? seq - 1 : seq;
    }

    /**
     * Returns the next frame to send; null if there is none. Returns the same frame until {@link
     * #sent} is called.
     */
    Sent next() {
        return waiting.peek();
    }

    void sent() {
        unacknowledged.add(waiting.remove());
    }

    /** Drops the next frame, which this server does not support, and counts its content. */
    void dropUnsupported(Totals totals) {
        Sent lost = waiting.remove();
        bytes -= lost.frame.length + FRAME_OVERHEAD;
        totals.entriesDropped += lost.entries;
    }

    /** Removes all closed frames up to {@code upTo}: the server has them, or they are discarded. */
    void acknowledge(long upTo) {
        forget(unacknowledged, upTo);
        // WELCOME may acknowledge frames that were sent on an earlier connection.
        forget(waiting, upTo);
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

    /** Called after the connection was lost: all unacknowledged frames are sent again. */
    void rewind() {
        while (!unacknowledged.isEmpty()) {
            waiting.addFirst(unacknowledged.removeLast());
        }
    }

    /** Drops and counts all closed frames, because the server would refuse one of them again. */
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
