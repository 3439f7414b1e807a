package io.tachograph.testing;

import io.tachograph.bootstrap.Session;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Decodes DICT and DATA of one session and joins the parts of segments to trees of calls. Like the
 * real server, it refuses ids that are not defined on the connection, exits without a call, and
 * parts whose carried calls (those that are open when the part begins) are not the open calls of
 * the previous part. It also refuses entries, because the Java agent sends none.
 */
public final class Decoder {
    private final Session session;
    private final Map<Integer, String> texts = new HashMap<>();
    private final Map<Integer, String> operations = new HashMap<>();
    private final Map<Integer, Integer> kinds = new HashMap<>();
    private final Map<Integer, Map<String, String>> series = new HashMap<>();
    private final Map<Integer, RecordType> recordTypes = new HashMap<>();
    private final Map<Long, Open> open = new HashMap<>();

    /** True to decode like a server that does not support declared records. */
    public boolean isOld;

    public final List<Call> roots = new ArrayList<>();
    public final List<Sample> samples = new ArrayList<>();
    public final List<Declared> declared = new ArrayList<>();

    /** Number of calls with an exit. */
    public long callsEnded;

    public long segmentParts;

    /** Number of parts before which other parts of their segment were dropped. */
    public long gaps;

    /** A segment whose last part has not arrived. */
    private static final class Open {
        final Deque<Call> stack = new ArrayDeque<>();
        final Map<Integer, Call> calls = new HashMap<>();
        int part;
        int nextCall;
    }

    public Decoder(Session session) {
        this.session = session;
    }

    /** A new connection must send the dictionary again. */
    public void forgetDictionary() {
        texts.clear();
        operations.clear();
        kinds.clear();
        series.clear();
        recordTypes.clear();
    }

    public void dict(byte[] body) {
        Fields in = new Fields(body);
        while (!in.atEnd()) {
            int sort = in.u8();
            int id = in.count();
            Fields.check(id >= 1 && id <= 65_536, "dictionary id " + id);
            switch (sort) {
                case 1 -> texts.put(id, in.string());
                case 2 -> {
                    kinds.put(id, in.u8());
                    operations.put(id, in.string());
                }
                case 3 -> {
                    Map<String, String> labels = new LinkedHashMap<>();
                    for (int n = in.count(); n > 0; n--) {
                        labels.put(in.string(), in.string());
                    }
                    series.put(id, labels);
                }
                case 4 -> {
                    Fields.check(!isOld, "DICT defines a record type for an old server");
                    recordTypes.put(id, RecordType.read(in));
                }
                default -> throw new IllegalStateException("definition of sort " + sort);
            }
        }
    }

    /** @return the number of the frame */
    public static long seq(byte[] body) {
        return new Fields(body).varint();
    }

    public void data(byte[] body) {
        Fields in = new Fields(body);
        in.varint();
        long base = in.u64();
        while (!in.atEnd()) {
            int tag = in.u8();
            Fields record = new Fields(in.blob());
            switch (tag) {
                case 1 -> samples(record, base);
                case 3 -> segment(record, base);
                case 4 -> declared(record, base);
                default -> throw new IllegalStateException("record of tag " + tag);
            }
            Fields.check(record.atEnd(), "unread bytes after a record of tag " + tag);
        }
    }

    private void samples(Fields in, long base) {
        int type = in.u8();
        Map<String, String> labels = defined(series, in.count());
        long at = base;
        for (int n = in.count(); n > 0; n--) {
            at += in.zigzag();
            Number value =
                    switch (type) {
                        case 1 -> Double.longBitsToDouble(in.u64());
                        case 2 -> in.zigzag();
                        default -> in.varint();
                    };
            samples.add(new Sample(labels, at, value));
        }
    }

    private void declared(Fields in, long base) {
        Fields.check(!isOld, "DATA has a declared record for an old server");
        RecordType type = defined(recordTypes, in.count());
        Map<String, String> labels = defined(series, in.count());
        long at = base + in.zigzag();
        int flags = in.u8();
        String trace = null;
        String span = null;
        if ((flags & 1) != 0) {
            long number = in.varint();
            trace = trace(in, flags, number);
            span = Fields.hex(Session.mix64(session.base(number) + in.varint()));
        }
        byte[] nulls = (flags & 2) != 0 ? in.raw((type.fields().size() + 7) / 8) : new byte[0];
        Map<String, Object> values = type.values(in, nulls, id -> defined(texts, id));
        declared.add(new Declared(type, labels, at, trace, span, values));
    }

    private String trace(Fields in, int flags, long number) {
        if ((flags & 4) != 0) {
            return Fields.hex(in.id8()) + Fields.hex(in.id8());
        }
        long began = (flags & 8) != 0 ? in.varint() : number;
        return Fields.hex(session.high()) + Fields.hex(session.traceLow(began));
    }

    private void segment(Fields in, long base) {
        segmentParts++;
        int flags = in.u8();
        long number = in.varint();
        String trace = trace(in, flags, number);
        String thread = defined(texts, in.count());
        long start = base + in.zigzag();
        String parent = (flags & 2) != 0 ? Fields.hex(in.id8()) : null;
        Open state = (flags & 1) != 0 ? carry(in, number, trace, thread, start) : new Open();
        open.put(number, state);
        events(in, state, number, trace, parent, thread, start);
        if ((flags & 16) != 0) {
            attributes(in, state);
        }
        if (state.stack.isEmpty()) {
            open.remove(number);
        }
        state.part++;
    }

    private Open carry(Fields in, long number, String trace, String thread, long start) {
        int part = in.count();
        int firstCall = in.count();
        Open before = open.get(number);
        boolean follows = before != null && before.part == part;
        if (!follows) {
            gaps++;
        } else {
            Fields.check(
                    before.nextCall == firstCall,
                    "segment " + number + " part " + part + " continues at call " + firstCall);
        }
        Open state = follows ? before : new Open();
        state.part = part;
        state.nextCall = firstCall;
        int n = in.count();
        List<Call> stack = new ArrayList<>(state.stack);
        for (int at = 0; at < n; at++) {
            String operation = defined(operations, at, in.count());
            int call = in.count();
            long entered = start - in.varint();
            if (follows) {
                Call known = stack.get(n - 1 - at);
                Fields.check(
                        known == state.calls.get(call),
                        "carried call " + call + " is not the open call at its place");
                known.operation = operation;
                Fields.check(
                        Math.abs(known.start - entered) < 1_000,
                        "carried call " + call + " began at another time");
            } else {
                push(
                        state,
                        call,
                        operation,
                        0,
                        trace,
                        Fields.hex(Session.mix64(session.base(number) + call)),
                        null,
                        thread,
                        entered);
            }
        }
        Fields.check(
                state.stack.size() == n,
                "segment " + number + " carries " + n + " of " + state.stack.size() + " calls");
        return state;
    }

    private String defined(Map<Integer, String> names, int at, int id) {
        Fields.check(
                names.containsKey(id), "id " + id + " of carried call " + at + " is not defined");
        return names.get(id);
    }

    private static <T> T defined(Map<Integer, T> names, int id) {
        Fields.check(names.containsKey(id), "id " + id + " is not defined");
        return names.get(id);
    }

    private void events(
            Fields in,
            Open state,
            long number,
            String trace,
            String parent,
            String thread,
            long start) {
        int n = in.count();
        Fields.check(n > 0 && n <= 65_536, "segment with " + n + " events");
        long time = start;
        for (int at = 0; at < n; at++) {
            long head = in.varint();
            time += head >>> 1;
            Fields.check(at > 0 || head >>> 1 == 0, "the first event has a time difference");
            int operation = (head & 1) != 0 ? in.count() : -1;
            if (operation > 0) {
                int call = state.nextCall++;
                String span = Fields.hex(Session.mix64(session.base(number) + call));
                String above = state.stack.isEmpty() ? parent : state.stack.peek().span;
                push(
                        state,
                        call,
                        defined(operations, operation),
                        kinds.get(operation),
                        trace,
                        span,
                        above,
                        thread,
                        time);
            } else {
                Fields.check(!state.stack.isEmpty(), "an exit without an open call");
                Call ended = state.stack.pop();
                ended.end = time;
                ended.failed = operation == 0;
                callsEnded++;
            }
        }
    }

    private void push(
            Open state,
            int call,
            String operation,
            int kind,
            String trace,
            String span,
            String parent,
            String thread,
            long at) {
        Call entered = new Call(operation, kind, trace, span, parent, thread, at);
        if (state.stack.isEmpty()) {
            roots.add(entered);
        } else {
            state.stack.peek().children.add(entered);
        }
        state.stack.push(entered);
        state.calls.put(call, entered);
    }

    private void attributes(Fields in, Open state) {
        for (int n = in.count(); n > 0; n--) {
            Call call = state.calls.get(in.count());
            Fields.check(call != null, "an attribute of a missing call");
            String key = defined(texts, in.count());
            String value =
                    switch (in.u8()) {
                        case 0 -> defined(texts, in.count());
                        case 1 -> in.string();
                        case 2 -> new java.util.UUID(in.id8(), in.id8()).toString();
                        default -> Long.toString(in.zigzag());
                    };
            call.attributes.put(key, value);
        }
    }
}
