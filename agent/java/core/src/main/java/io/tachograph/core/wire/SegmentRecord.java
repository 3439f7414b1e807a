package io.tachograph.core.wire;

import io.tachograph.bootstrap.Context;

/**
 * One part of a segment under construction (wire.md, DATA, tag 3). The caller adds events in
 * order; {@link #write} then writes the record.
 */
public final class SegmentRecord {
    private final Dictionary dictionary;
    private final Bytes carried = new Bytes(64);
    private final Bytes events = new Bytes(1_024);
    private final Bytes attributes = new Bytes(64);
    private int carriedCount;
    private int eventCount;
    private int attributeCount;
    private int exits;
    private long start;
    private long last;
    private String threadKnown;
    private int threadId;

    public SegmentRecord(Dictionary dictionary) {
        this.dictionary = dictionary;
    }

    public void clear() {
        carried.clear();
        events.clear();
        attributes.clear();
        carriedCount = 0;
        eventCount = 0;
        attributeCount = 0;
        exits = 0;
    }

    /** Adds a call that is already open. @param age ns from its enter to the part's first event */
    public void carry(int operation, int call, long age) {
        carried.varint(dictionary.operation(operation)).varint(call).varint(age);
        carriedCount++;
    }

    /** @param nanos time of the event; only differences are written */
    public void enter(long nanos, int operation) {
        events.varint(step(nanos) << 1 | 1).varint(dictionary.operation(operation));
    }

    public void exit(long nanos) {
        events.varint(step(nanos) << 1);
        exits++;
    }

    public void exitFailed(long nanos) {
        events.varint(step(nanos) << 1 | 1).varint(0);
        exits++;
    }

    /**
     * Returns the buffer with space for {@code count} events, for a loop that encodes events like
     * {@link #enter} and {@link #exit}. The part must already have its first event. After the loop,
     * the caller calls {@link #took}.
     */
    public Bytes room(int count) {
        events.reserve(count * 2 * Bytes.VARINT_BYTES_MAX);
        return events;
    }

    /**
     * @param count number of events written since {@link #room}
     * @param exitCount number of exits among them
     * @param end time of the last event
     */
    public void took(int count, int exitCount, long end) {
        eventCount += count;
        exits += exitCount;
        last = end;
    }

    private long step(long nanos) {
        if (eventCount++ == 0) {
            start = nanos;
            last = nanos;
        }
        long step = Math.max(0, nanos - last);
        last = Math.max(last, nanos);
        return step;
    }

    /**
     * @return false if this part has the maximum number of attributes
     */
    public boolean attribute(int call, String key, String value) {
        if (attributeCount >= Wire.SEGMENT_ATTRIBUTES_MAX) {
            return false;
        }
        attributeCount++;
        attributes.varint(call).varint(dictionary.text(key));
        if (isUuid(value)) {
            attributes.u8(Wire.FORM_UUID).id8(half(value, 0)).id8(half(value, 1));
            return true;
        }
        int id = dictionary.value(value);
        if (id != 0) {
            attributes.u8(Wire.FORM_TEXT_ID).varint(id);
        } else {
            attributes.u8(Wire.FORM_STRING).blob(Bytes.utf8(value, Wire.ATTRIBUTE_BYTES_MAX));
        }
        return true;
    }

    /**
     * @return false if this part has the maximum number of attributes
     */
    public boolean attribute(int call, String key, long value) {
        if (attributeCount >= Wire.SEGMENT_ATTRIBUTES_MAX) {
            return false;
        }
        attributeCount++;
        attributes.varint(call).varint(dictionary.text(key)).u8(Wire.FORM_INTEGER).zigzag(value);
        return true;
    }

    /**
     * Changes the operation of a call that was entered in this part or is carried into it.
     *
     * @param first number of the first call entered in this part
     */
    public void rename(int call, int first, int operation) {
        if (call < first) {
            renameCarried(call, dictionary.operation(operation));
            return;
        }
        int enters = first;
        for (int at = 0; at < events.size(); ) {
            boolean isExit = (events.peekVarint(at) & 1) == 0;
            at += events.peekWidth(at);
            if (isExit) {
                continue;
            }
            if (events.peekVarint(at) != 0 && enters++ == call) {
                events.replaceVarint(at, dictionary.operation(operation));
                return;
            }
            at += events.peekWidth(at);
        }
    }

    private void renameCarried(int call, int id) {
        for (int at = 0; at < carried.size(); ) {
            int next = at + carried.peekWidth(at);
            if (carried.peekVarint(next) == call) {
                carried.replaceVarint(at, id);
                return;
            }
            next += carried.peekWidth(next);
            at = next + carried.peekWidth(next);
        }
    }

    public int eventCount() {
        return eventCount;
    }

    /** Number of calls that end in this part. */
    public int exits() {
        return exits;
    }

    public int attributeBytes() {
        return attributes.size();
    }

    /** Time of the first event. */
    public long start() {
        return start;
    }

    /** Time of the last event. If this part has no event yet, the event is in an earlier part. */
    public long last() {
        return last;
    }

    public static final class Head {
        public long segment;

        /** Null if the trace begins with this segment. */
        public Context parent;

        public int part;
        public int firstCall;
        public String thread;
    }

    /** @param startInBase time of the first event relative to the base of the frame, ns */
    public void write(Head head, long startInBase, Bytes out) {
        Context parent = head.parent;
        boolean remote = parent != null && parent.segment() == Context.REMOTE;
        int flags =
                (head.part > 0 ? Wire.FLAG_CONTINUED : 0)
                        | (parent != null ? Wire.FLAG_PARENT : 0)
                        | (remote ? Wire.FLAG_TRACE_FULL : 0)
                        | (parent != null && !remote ? Wire.FLAG_TRACE_OF_SEGMENT : 0)
                        | (attributeCount > 0 ? Wire.FLAG_ATTRIBUTES : 0);
        out.u8(flags).varint(head.segment);
        if (remote) {
            out.id8(parent.traceHigh()).id8(parent.traceLow());
        } else if (parent != null) {
            out.varint(parent.segment());
        }
        out.varint(threadId(head.thread)).zigzag(startInBase);
        if (parent != null) {
            out.id8(parent.span());
        }
        if (head.part > 0) {
            out.varint(head.part).varint(head.firstCall).varint(carriedCount).raw(carried);
        }
        out.varint(eventCount).raw(events);
        if (attributeCount > 0) {
            out.varint(attributeCount).raw(attributes);
        }
    }

    /** The name is nearly always that of the previous part. */
    private int threadId(String name) {
        if (name != threadKnown) {
            threadId = dictionary.text(name);
            threadKnown = name;
        }
        return threadId;
    }

    /**
     * True for {@code xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx} in lower case. Only this spelling can
     * be restored from 16 bytes.
     */
    private static boolean isUuid(String text) {
        if (text.length() != 36) {
            return false;
        }
        for (int at = 0; at < 36; at++) {
            char c = text.charAt(at);
            boolean hyphen = at == 8 || at == 13 || at == 18 || at == 23;
            if (hyphen ? c != '-' : !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f')) {
                return false;
            }
        }
        return true;
    }

    private static long half(String uuid, int which) {
        String digits = uuid.replace("-", "");
        return Long.parseUnsignedLong(digits.substring(16 * which, 16 * which + 16), 16);
    }
}
