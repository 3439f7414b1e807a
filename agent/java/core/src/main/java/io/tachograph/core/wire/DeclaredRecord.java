package io.tachograph.core.wire;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.RecordTypes;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.UUID;

/**
 * Encodes a declared record (wire.md, DATA, tag 4) and its type (DICT, kind 4). The sender reuses
 * one {@code DeclaredRecord} for all records.
 */
public final class DeclaredRecord {
    private static final long NANOS = 1_000_000_000;

    private final Dictionary dictionary;
    private final Map<String, String> labels;

    /** By the id of the type. */
    private Series[] series = new Series[16];

    /** The numeric and boolean values of the current record, in the order of the fields. */
    public final long[] words = new long[RecordTypes.RECORD_FIELDS_MAX];

    /** The other values of the current record, in the order of the fields. */
    public final Object[] objects = new Object[RecordTypes.RECORD_FIELDS_MAX];

    /** @param labels the labels of this process; the series of every type has them */
    public DeclaredRecord(Dictionary dictionary, Map<String, String> labels) {
        this.dictionary = dictionary;
        this.labels = labels;
    }

    public static final class Call {
        public long segment;

        /** Parent of the segment; null if the trace begins with this segment. */
        public Context parent;

        /** Number of the call; negative if the record was written outside of calls. */
        public int call;
    }

    /**
     * @param atInBase time of the record relative to the base of the frame, ns
     * @return false if the dictionary has no space for the type or its series; nothing is written
     *     then
     */
    public boolean write(RecordTypes.Entry type, Call call, long atInBase, Bytes out) {
        int id = seriesOf(type);
        if (id == 0 || !dictionary.recordType(type)) {
            return false;
        }
        boolean nulls = hasNull(type.objects);
        out.varint(type.id).varint(id).zigzag(atInBase);
        writeCall(call, nulls ? Wire.RECORD_NULLS : 0, out);
        if (nulls) {
            writeNulls(type, out);
        }
        int word = 0;
        int object = 0;
        for (int at = 0; at < type.kinds.length(); at++) {
            char kind = type.kinds.charAt(at);
            if (RecordTypes.isWord(kind)) {
                writeWord(kind, words[word++], out);
            } else {
                writeObject(kind, objects[object++], out);
            }
        }
        return true;
    }

    private int seriesOf(RecordTypes.Entry type) {
        if (type.id >= series.length) {
            series = java.util.Arrays.copyOf(series, Integer.highestOneBit(type.id) * 2);
        }
        if (series[type.id] == null) {
            series[type.id] = new Series(type.name, labels);
        }
        return dictionary.series(series[type.id]);
    }

    private boolean hasNull(int count) {
        for (int at = 0; at < count; at++) {
            if (objects[at] == null) {
                return true;
            }
        }
        return false;
    }

    private static void writeCall(Call call, int flags, Bytes out) {
        if (call.call < 0) {
            out.u8(flags);
            return;
        }
        Context parent = call.parent;
        boolean remote = parent != null && parent.segment() == Context.REMOTE;
        int trace = parent == null ? 0 : remote ? Wire.RECORD_TRACE_FULL : Wire.RECORD_TRACE_OF_SEGMENT;
        out.u8(flags | Wire.RECORD_CONTEXT | trace).varint(call.segment);
        if (remote) {
            out.id8(parent.traceHigh()).id8(parent.traceLow());
        } else if (parent != null) {
            out.varint(parent.segment());
        }
        out.varint(call.call);
    }

    private void writeNulls(RecordTypes.Entry type, Bytes out) {
        int fields = type.kinds.length();
        int object = 0;
        int bits = 0;
        for (int at = 0; at < fields; at++) {
            boolean isNull =
                    !RecordTypes.isWord(type.kinds.charAt(at)) && objects[object++] == null;
            bits |= isNull ? 1 << at % 8 : 0;
            if (at % 8 == 7 || at == fields - 1) {
                out.u8(bits);
                bits = 0;
            }
        }
    }

    private static void writeWord(char kind, long word, Bytes out) {
        switch (kind) {
            case RecordTypes.BOOL:
                out.u8((int) word);
                break;
            case RecordTypes.DOUBLE:
                out.u64(word);
                break;
            case RecordTypes.FLOAT:
                out.u32((int) word);
                break;
            default:
                out.zigzag(word);
        }
    }

    private void writeObject(char kind, Object value, Bytes out) {
        if (value == null) {
            return;
        }
        switch (kind) {
            case RecordTypes.NAME:
                out.varint(dictionary.text((String) value));
                break;
            case RecordTypes.UUID:
                UUID uuid = (UUID) value;
                out.id8(uuid.getMostSignificantBits()).id8(uuid.getLeastSignificantBits());
                break;
            case RecordTypes.INSTANT:
                Instant instant = (Instant) value;
                out.zigzag(nanos(instant.getEpochSecond(), instant.getNano()));
                break;
            case RecordTypes.DURATION:
                Duration duration = (Duration) value;
                out.zigzag(nanos(duration.getSeconds(), duration.getNano()));
                break;
            default:
                out.blob(Bytes.utf8((String) value, Wire.ATTRIBUTE_BYTES_MAX));
        }
    }

    /**
     * Converts a time or a duration to ns. A time before 1677 or after 2262, or a duration of more
     * than 292 years, is clamped.
     */
    private static long nanos(long seconds, int nano) {
        try {
            return seconds < 0
                    ? Math.addExact(Math.multiplyExact(seconds + 1, NANOS), nano - NANOS)
                    : Math.addExact(Math.multiplyExact(seconds, NANOS), nano);
        } catch (ArithmeticException e) {
            return seconds < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }

    static void define(RecordTypes.Entry type, Bytes out) {
        out.u8(Wire.DICT_RECORD_TYPE).varint(type.id).string(type.name);
        out.varint(type.kinds.length());
        for (int at = 0; at < type.kinds.length(); at++) {
            char kind = type.kinds.charAt(at);
            String unit = type.unit(at);
            boolean isBare = kind == RecordTypes.DURATION && unit.isEmpty();
            out.u8(wireType(kind)).string(type.field(at)).string(isBare ? "ns" : unit);
        }
    }

    private static int wireType(char kind) {
        switch (kind) {
            case RecordTypes.BOOL:
                return Wire.FIELD_BOOL;
            case RecordTypes.DOUBLE:
                return Wire.FIELD_F64;
            case RecordTypes.FLOAT:
                return Wire.FIELD_F32;
            case RecordTypes.TEXT:
                return Wire.FIELD_TEXT;
            case RecordTypes.NAME:
                return Wire.FIELD_TEXT_ID;
            case RecordTypes.UUID:
                return Wire.FIELD_UUID;
            case RecordTypes.INSTANT:
                return Wire.FIELD_TIME;
            default:
                return Wire.FIELD_I64;
        }
    }
}
