package io.tachograph.core.wire;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.RecordTypes;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Texts, operations, series and record types, with their ids on the wire. An id keeps its meaning
 * for the whole session, so frames that are sent again stay valid. A new connection gets all
 * definitions again. The size is bounded as the protocol requires. Past a bound, a new name becomes
 * {@code (other)}, a new value gets no id, and a new series or record type is not defined.
 */
public final class Dictionary {
    /** Limit on the keys, names of threads and names of enum constants that get ids. */
    private static final int TEXTS_MAX = 32_768;

    /** Limit on the repeated values that get ids. */
    private static final int VALUES_MAX = 16_384;

    private static final int SERIES_MAX = 16_384;
    private static final int OPERATIONS_MAX = Wire.DICT_IDS_MAX - 64;

    /** Below the limit of the protocol, so that the last definitions still fit. */
    private static final int STRING_BYTES_MAX = Wire.DICT_BYTES_MAX - (1 << 20);

    private static final int SEEN = 4_096;

    private final Operations operations;
    private final Map<String, Integer> texts = new HashMap<>();
    private final Map<String, Integer> operationsByName = new HashMap<>();
    private int[] operationIds = new int[1_024];
    private int operationCount;
    private int seriesCount;
    private int valueCount;
    private long stringBytes;
    private final int[] seen = new int[SEEN];

    private final Definitions definitions = new Definitions();
    private final Definitions recordTypes = new Definitions();
    private final BitSet defined = new BitSet();

    public Dictionary(Operations operations) {
        this.operations = operations;
    }

    /** Size of the definitions, without record types, bytes. */
    public int size() {
        return definitions.size();
    }

    /** As {@link Definitions#frame}. */
    public byte[] frame(int from, int to) {
        return definitions.frame(from, to);
    }

    /** As {@link Definitions#end}. */
    public int end(int from, int to) {
        return definitions.end(from, to);
    }

    /** Kept separately, because some servers do not support record types. */
    public Definitions recordTypes() {
        return recordTypes;
    }

    /** Defines a record type under its id. @return false if there is no space */
    boolean recordType(RecordTypes.Entry type) {
        if (defined.get(type.id)) {
            return true;
        }
        if (stringBytes > STRING_BYTES_MAX) {
            return false;
        }
        int before = recordTypes.size();
        DeclaredRecord.define(type, recordTypes.begin());
        recordTypes.end();
        stringBytes += recordTypes.size() - before;
        defined.set(type.id);
        return true;
    }

    /** Returns the wire id of an operation; 0 if it has none yet. */
    public int known(int operation) {
        return operation < operationIds.length ? operationIds[operation] : 0;
    }

    /** Returns the wire id of an operation of {@link Operations}; assigns an id if needed. */
    public int operation(int operation) {
        if (operation >= operationIds.length) {
            operationIds = Arrays.copyOf(operationIds, Integer.highestOneBit(operation) * 2);
        }
        int id = operationIds[operation];
        if (id == 0) {
            id = defineOperation(operations.entry(operation));
            operationIds[operation] = id;
        }
        return id;
    }

    private int defineOperation(Operations.Entry entry) {
        boolean full = operationCount >= OPERATIONS_MAX || stringBytes > STRING_BYTES_MAX;
        byte[] name = Bytes.utf8(full ? Operations.OTHER : entry.name, Wire.OPERATION_BYTES_MAX);
        // Names of one kind that are equal after the cut, or that became (other), share an id.
        String key = entry.kind + new String(name, StandardCharsets.UTF_8);
        Integer known = operationsByName.get(key);
        if (known != null) {
            return known;
        }
        int id = ++operationCount;
        operationsByName.put(key, id);
        definitions.begin().u8(Wire.DICT_OPERATION).varint(id).u8(entry.kind).blob(name);
        defined(name.length);
        return id;
    }

    /** Returns the id of a key, or of the name of a thread or an enum constant. */
    public int text(String text) {
        Integer id = texts.get(text);
        if (id != null) {
            return id;
        }
        boolean full = texts.size() - valueCount >= TEXTS_MAX || stringBytes > STRING_BYTES_MAX;
        if (full && !text.equals(Operations.OTHER)) {
            return text(Operations.OTHER);
        }
        return defineText(text);
    }

    /**
     * Returns the id of a value; 0 if the value has more than 64 characters, if it is not known to
     * have occurred before, or if there is no space.
     */
    public int value(String value) {
        Integer id = texts.get(value);
        if (id != null) {
            return id;
        }
        if (value.length() > 64 || valueCount >= VALUES_MAX || stringBytes > STRING_BYTES_MAX) {
            return 0;
        }
        int hash = value.hashCode() | 1;
        int slot = (hash >>> 1) % SEEN;
        if (seen[slot] != hash) {
            seen[slot] = hash;
            return 0;
        }
        valueCount++;
        return defineText(value);
    }

    private int defineText(String text) {
        int id = texts.size() + 1;
        byte[] bytes = Bytes.utf8(text, Wire.ATTRIBUTE_BYTES_MAX);
        texts.put(text, id);
        definitions.begin().u8(Wire.DICT_TEXT).varint(id).blob(bytes);
        defined(bytes.length);
        return id;
    }

    /** Returns the id of a series; 0 if there is no space for it. */
    int series(Series series) {
        if (series.id == 0 && seriesCount < SERIES_MAX && stringBytes <= STRING_BYTES_MAX) {
            series.id = ++seriesCount;
            Bytes out = definitions.begin();
            out.u8(Wire.DICT_SERIES).varint(series.id).varint(series.labels().size());
            int before = out.size();
            series.labels().forEach((name, value) -> out.string(name).string(value));
            defined(out.size() - before);
        }
        return series.id;
    }

    private void defined(int bytes) {
        stringBytes += bytes;
        definitions.end();
    }
}
