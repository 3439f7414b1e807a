package io.tachograph.core.send;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.HandedCall;
import io.tachograph.bootstrap.RecordTypes;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.bootstrap.Word;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.SegmentRecord;

import java.util.Arrays;

/**
 * Reads the ring of one thread and turns its words into parts of segments. A part is closed when
 * the outermost call ends, when the thread leaves this call ({@link HandedCall}), when the part is
 * long or a second old, and when the program ends. The next part of the segment repeats the calls
 * that are still open, the <i>carried</i> calls.
 *
 * <p>Before: {@link ThreadBuffer}; {@link Word} defines the layout of its words. After: {@link
 * Outbox}.
 */
final class RingReader {
    private static final int EVENTS_MAX = 4_096;

    /** Maximum number of events for which {@link #takeCalls} reserves space at once. */
    private static final int RUN_EVENTS = 256;

    /**
     * With many open calls, a part has up to twice as many events as open calls, and at most this
     * number. A shorter part would consist mostly of carried calls.
     */
    private static final int EVENTS_MAX_DEEP = 60_000;

    private static final int ATTRIBUTE_BYTES_MAX = 262_144;
    private static final long AGE_MAX_NANOS = 1_000_000_000;

    /** Longest time for which an unrecorded outermost call suppresses all its callees. */
    static final long UNRECORDED_NANOS_MAX = 60_000_000_000L;

    /**
     * After this number of words, and at the end of a read, the words are released to the writer.
     */
    private static final int FREE_WORDS = 2_048;

    private final ThreadBuffer buffer;
    private final Outbox outbox;
    private final WallClock clock;
    private final Totals totals;
    private final CallCounts counts;
    private final Dictionary dictionary;
    private final SegmentRecord record;
    private final DeclaredRecord declared;
    private final DeclaredRecord.Call call = new DeclaredRecord.Call();
    private final SegmentRecord.Head head = new SegmentRecord.Head();

    /**
     * The open calls that the reader has seen: operation, number, start as {@code
     * System.nanoTime()}.
     */
    private int[] openOperations = new int[64];

    private int[] openCalls = new int[64];
    private long[] openTimes = new long[64];
    private int depth;
    private int calls;
    private long nextSegment;
    private Context nextParent;
    private String borrower = "";

    /** Offset from {@code System.nanoTime()} to the epoch, ns; constant within a segment. */
    private long offset;

    /**
     * The last {@link ThreadBuffer#outermostUnrecorded}, and the {@code System.nanoTime()} at which
     * the reader first saw this number.
     */
    private int unrecorded;

    private long unrecordedSince;

    /**
     * True after an error inside this segment: its rest is discarded, and the calls are counted as
     * dropped.
     */
    private boolean broken;

    RingReader(
            ThreadBuffer buffer,
            Outbox outbox,
            WallClock clock,
            Totals totals,
            CallCounts counts,
            Dictionary dictionary,
            DeclaredRecord declared) {
        this.buffer = buffer;
        this.outbox = outbox;
        this.clock = clock;
        this.totals = totals;
        this.counts = counts;
        this.dictionary = dictionary;
        this.record = new SegmentRecord(dictionary);
        this.declared = declared;
    }

    /**
     * Reads all available words. Under the policy {@code block}, it stops when the queue is full.
     *
     * @return number of words read
     */
    int read() {
        long begin = buffer.consumed();
        long at = begin;
        long end = buffer.published();
        // The clock is read after the ring's position, so that no event is later than this time.
        long now = System.nanoTime();
        int sinceFreed = 0;
        boundUnrecorded(now);
        // The queue is checked before each word that may complete a part.
        while (at < end && !outbox.mustWait()) {
            long before = at;
            long word = buffer.word(at);
            int width = width(word);
            long second = width > 1 ? buffer.word(at + 1) : 0;
            at += width;
            try {
                if (isRecord(word)) {
                    takeRecord(word, at - width + 1, now);
                } else {
                    take(word, second, now);
                }
                at = takeCalls(at, end, now);
            } catch (RuntimeException | OutOfMemoryError e) {
                spoil();
            }
            sinceFreed += (int) (at - before);
            if (sinceFreed >= FREE_WORDS) {
                buffer.free(at);
                sinceFreed = 0;
            }
        }
        if (at > begin) {
            buffer.free(at);
        }
        if (record.eventCount() > 0 && now - record.start() > AGE_MAX_NANOS && !outbox.mustWait()) {
            closePart();
        }
        return (int) (at - begin);
    }

    /**
     * Gives up an outermost call that has been unrecorded for more than {@link
     * #UNRECORDED_NANOS_MAX}. Its exit may be lost; its thread would then never record again.
     *
     * @param now ns, always from the same clock
     */
    void boundUnrecorded(long now) {
        int number = buffer.outermostUnrecorded();
        if (number != unrecorded) {
            unrecorded = number;
            unrecordedSince = now;
        } else if (number != 0 && now - unrecordedSince > UNRECORDED_NANOS_MAX) {
            buffer.endUnrecorded(number);
        }
    }

    /** Closes the current part, even if calls are open. */
    void flush() {
        if (record.eventCount() > 0) {
            closePart();
        }
    }

    private static int width(long word) {
        if (Word.kind(word) != Word.ESCAPE) {
            return 1;
        }
        int what = Word.middle(word);
        if (what > Word.RECORD) {
            return 1 + RecordTypes.shared().entry(what - Word.RECORD).words;
        }
        return what == Word.SEGMENT_NUMBER
                        || what == Word.ATTRIBUTE_INTEGER
                        || what == Word.OPERATION
                ? 2
                : 1;
    }

    private static boolean isRecord(long word) {
        return Word.kind(word) == Word.ESCAPE && Word.middle(word) > Word.RECORD;
    }

    /** Reads a declared record, which belongs to the innermost open call, if there is one. */
    private void takeRecord(long word, long at, long now) {
        RecordTypes.Entry type = RecordTypes.shared().entry(Word.middle(word) - Word.RECORD);
        for (int index = 0; index < type.words; index++) {
            declared.words[index] = buffer.word(at + index);
        }
        // All objects are taken even if the record is dropped: the objects of the next word follow.
        for (int index = 0; index < type.objects; index++) {
            declared.objects[index] = buffer.takeObject();
        }
        try {
            if (outbox.isFull() || !write(type, Word.time(word, now))) {
                totals.entriesDropped++;
            } else {
                totals.entriesSent++;
            }
        } catch (RuntimeException | OutOfMemoryError e) {
            totals.entriesDropped++;
        } finally {
            Arrays.fill(declared.objects, 0, type.objects, null);
        }
    }

    private boolean write(RecordTypes.Entry type, long time) {
        call.call = depth > 0 ? openCalls[depth - 1] : -1;
        call.segment = head.segment;
        call.parent = head.parent;
        long at = time + (depth > 0 ? offset : clock.offset());
        var out = outbox.beginEntry(at);
        if (!declared.write(type, call, at - outbox.entryBase(), out)) {
            return false;
        }
        outbox.endEntry();
        return true;
    }

    private void take(long word, long second, long now) {
        switch (Word.kind(word)) {
            case Word.ENTER:
                enter(Word.time(word, now), Word.middle(word));
                break;
            case Word.EXIT:
                exit(Word.time(word, now), false);
                break;
            case Word.EXIT_FAILED:
                exit(Word.time(word, now), true);
                break;
            default:
                escape(Word.middle(word), second);
        }
    }

    /**
     * Fast path for the most frequent words: enters and normal exits of inner calls, if they do not
     * end a part and the operation has a wire id. The path stops before the first other word, and
     * after at most {@link #RUN_EVENTS} words. The counters are local variables, because the sender
     * spends most of its time in this loop.
     *
     * @return position of the first word not taken
     */
    private long takeCalls(long from, long end, long now) {
        int eventCount = record.eventCount();
        boolean isLong = record.attributeBytes() >= ATTRIBUTE_BYTES_MAX;
        if (depth == 0 || broken || eventCount == 0 || isLong) {
            return from;
        }
        // The event that completes a part takes the slow path.
        long stop = Math.min(end, from + Math.min(RUN_EVENTS, EVENTS_MAX - 1 - eventCount));
        Bytes events = record.room((int) Math.max(0, stop - from));
        byte[] bytes = events.array();
        int size = events.size();
        long last = record.last();
        int open = depth;
        int number = calls;
        int exits = 0;
        long at = from;
        while (at < stop) {
            long word = buffer.word(at);
            int kind = Word.kind(word);
            long time = Math.max(last, Word.time(word, now));
            if (kind == Word.EXIT && open > 1) {
                open--;
                exits++;
                size = Bytes.putVarint(bytes, size, time - last << 1);
            } else if (kind == Word.ENTER && open < openTimes.length) {
                int operation = Word.middle(word);
                int id = dictionary.known(operation);
                if (id == 0) {
                    break;
                }
                openOperations[open] = operation;
                openCalls[open] = number++;
                openTimes[open++] = time;
                counts.enter(operation);
                size = Bytes.putVarint(bytes, size, time - last << 1 | 1);
                size = Bytes.putVarint(bytes, size, id);
            } else {
                break;
            }
            last = time;
            at++;
        }
        if (at > from) {
            depth = open;
            calls = number;
            events.end(size);
            record.took((int) (at - from), exits, last);
        }
        return at;
    }

    private void enter(long time, int operation) {
        if (depth == 0) {
            beginSegment();
        }
        push(operation, calls++, time);
        counts.enter(operation);
        if (!broken) {
            prepare();
            record.enter(time, operation);
        }
        closeIfLong();
    }

    private void exit(long time, boolean failed) {
        if (depth == 0) {
            return; // impossible, because the writer counts its open calls
        }
        // first: the depth must agree with the writer's even if the rest fails
        int open = depth--;
        if (!broken) {
            prepareExit(open, time);
            if (failed) {
                record.exitFailed(time);
            } else {
                record.exit(time);
            }
        } else {
            totals.callsDroppedInQueue++;
        }
        if (depth == 0) {
            closePart();
        } else {
            closeIfLong();
        }
    }

    private void beginSegment() {
        record.clear();
        broken = false;
        calls = 0;
        offset = clock.offset();
        head.segment = nextSegment++;
        head.parent = nextParent;
        nextParent = null;
        head.part = 0;
        head.firstCall = 0;
        head.thread = threadName();
    }

    private String threadName() {
        if (buffer.isBorrowed()) {
            return borrower.isEmpty() ? "virtual" : borrower;
        }
        Thread owner = buffer.owner();
        return owner == null ? "ended" : owner.getName();
    }

    private void push(int operation, int call, long time) {
        if (depth == openOperations.length) {
            openOperations = Arrays.copyOf(openOperations, depth * 2);
            openCalls = Arrays.copyOf(openCalls, depth * 2);
            openTimes = Arrays.copyOf(openTimes, depth * 2);
        }
        openOperations[depth] = operation;
        openCalls[depth] = call;
        openTimes[depth] = time;
        depth++;
    }

    /**
     * Called before an enter event. Adds the carried calls at the first event of a part, except in
     * the first part of the segment. The entered call, already on the stack of open calls, is not
     * carried.
     */
    private void prepare() {
        if (record.eventCount() == 0 && head.part > 0) {
            carry(depth - 1, openTimes[depth - 1]);
            head.firstCall = calls - 1;
        }
    }

    private void prepareExit(int open, long time) {
        if (record.eventCount() == 0 && head.part > 0) {
            carry(open, time);
            head.firstCall = calls;
        }
    }

    private void carry(int count, long start) {
        for (int at = 0; at < count; at++) {
            record.carry(openOperations[at], openCalls[at], Math.max(0, start - openTimes[at]));
        }
    }

    private void escape(int what, long second) {
        switch (what) {
            case Word.SEGMENT_NUMBER:
                nextSegment = second;
                break;
            case Word.PARENT:
                nextParent = (Context) buffer.takeObject();
                break;
            case Word.THREAD:
                borrower = (String) buffer.takeObject();
                break;
            case Word.ATTRIBUTE_TEXT:
                String key = (String) buffer.takeObject();
                String value = (String) buffer.takeObject();
                attribute(key, value);
                break;
            case Word.ATTRIBUTE_INTEGER:
                String name = (String) buffer.takeObject();
                if (depth > 0 && !broken && !record.attribute(openCalls[depth - 1], name, second)) {
                    totals.attributesDropped++;
                }
                break;
            case Word.OPERATION:
                rename((int) (second >>> 32), (int) second);
                break;
            case Word.HANDED:
                letGo((HandedCall) buffer.takeObject());
                break;
            default:
                attribute("exception", ExceptionText.of((Throwable) buffer.takeObject()));
        }
    }

    private void rename(int token, int operation) {
        if (token > 0 && token <= depth) {
            openOperations[token - 1] = operation;
            if (!broken) {
                record.rename(openCalls[token - 1], head.firstCall, operation);
            }
        }
    }

    /**
     * The outermost call continues without its thread; {@link HandedCalls} writes the last part.
     */
    private void letGo(HandedCall handed) {
        closePart();
        HandedCalls.Rest rest = new HandedCalls.Rest();
        rest.isLost = broken || depth != 1;
        if (!rest.isLost) {
            rest.head.segment = head.segment;
            rest.head.parent = head.parent;
            rest.head.part = head.part;
            rest.head.firstCall = calls;
            rest.head.thread = head.thread;
            rest.operation = openOperations[0];
            rest.call = openCalls[0];
            rest.begin = openTimes[0];
            rest.offset = offset;
        }
        handed.rest = rest;
        depth = 0;
    }

    private void attribute(String key, String value) {
        if (depth > 0 && !broken && !record.attribute(openCalls[depth - 1], key, value)) {
            totals.attributesDropped++;
        }
    }

    private void closeIfLong() {
        int events = record.eventCount();
        if (events >= EVENTS_MAX && events >= Math.min(EVENTS_MAX_DEEP, 2 * depth)
                || record.attributeBytes() >= ATTRIBUTE_BYTES_MAX) {
            closePart();
        }
    }

    /**
     * Passes the part to the outbox. If the queue is full, drops the part and counts the calls that
     * end in it. Then begins the next part.
     */
    private void closePart() {
        if (record.eventCount() > 0 && !broken) {
            if (outbox.isFull()) {
                totals.callsDroppedInQueue += record.exits();
            } else {
                outbox.put(record, head, offset, totals);
            }
        }
        record.clear();
        head.part++;
    }

    /**
     * Ends the open calls of a thread that has ended. The calls end as failed, at the time of the
     * last event of the segment. That event may be in an earlier part.
     */
    void finish() {
        while (depth > 0) {
            exit(record.last(), true);
        }
        nextParent = null;
    }

    /** Gives up the segment, but not the ring, after an unexpected error. */
    private void spoil() {
        totals.callsDroppedInQueue += record.exits();
        record.clear();
        broken = true;
    }
}
