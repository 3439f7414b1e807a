package io.tachograph.core.wire;

import io.tachograph.bootstrap.Operations;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Strings and their ids on the wire. Ids are given out once and mean the same for the whole
 * session, so frames that wait to be sent again stay right; a new connection is sent everything
 * from the start. Bounded as the protocol wants it: past a bound the name is {@code (other)}.
 */
public final class Dictionary {
    /**
     * Texts that may become ids: thread names and keys, and, up to a lower bound, values that come
     * again.
     */
    private static final int TEXTS_MAX = 32_768;

    private static final int VALUES_MAX = 16_384;
    private static final int SERIES_MAX = 16_384;
    private static final int OPERATIONS_MAX = Wire.DICT_IDS_MAX - 64;

    /** Below the protocol's bound, so that the last definitions still fit. */
    private static final int STRING_BYTES_MAX = Wire.DICT_BYTES_MAX - (1 << 20);

    private static final int BODY_BYTES = 65_536;
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

    private final Bytes definitions = new Bytes(16_384);

    /**
     * Positions in {@link #definitions} where a DICT body may end, some {@link #BODY_BYTES} apart.
     */
    private final List<Integer> cuts = new ArrayList<>();

    public Dictionary(Operations operations) {
        this.operations = operations;
    }

    /**
     * Bytes of all definitions so far; a DATA frame may be sent when so much was sent on its
     * connection.
     */
    public int size() {
        return definitions.size();
    }

    /**
     * The next DICT frame of a connection.
     *
     * @param from how much was sent on it
     * @param to how much is needed
     * @return null if all of it was sent
     */
    public byte[] frame(int from, int to) {
        if (from >= to) {
            return null;
        }
        return Frame.of(Wire.DICT, definitions.array(), from, end(from, to) - from);
    }

    /** Where the frame that {@link #frame} makes ends. */
    public int end(int from, int to) {
        int found = java.util.Collections.binarySearch(cuts, from + 1);
        int at = found < 0 ? -found - 1 : found;
        return at < cuts.size() ? Math.min(to, cuts.get(at)) : to;
    }

    /** Wire id of an operation of {@link Operations}. */
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
        // Names that differ only past the cut, and all (other) of a kind, share an id.
        String key = entry.kind + new String(name, StandardCharsets.UTF_8);
        Integer known = operationsByName.get(key);
        if (known != null) {
            return known;
        }
        int id = ++operationCount;
        operationsByName.put(key, id);
        definitions.u8(Wire.DICT_OPERATION).varint(id).u8(entry.kind).blob(name);
        defined(name.length);
        return id;
    }

    /** Id of a key or a thread's name. */
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

    /** Id of a value that is worth one: it is short and came before. 0 if it is not. */
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
        definitions.u8(Wire.DICT_TEXT).varint(id).blob(bytes);
        defined(bytes.length);
        return id;
    }

    /** Id of a series; 0 if there are too many. */
    int series(Series series) {
        if (series.id == 0 && seriesCount < SERIES_MAX && stringBytes <= STRING_BYTES_MAX) {
            series.id = ++seriesCount;
            definitions.u8(Wire.DICT_SERIES).varint(series.id).varint(series.labels().size());
            int before = definitions.size();
            series.labels().forEach((name, value) -> definitions.string(name).string(value));
            defined(definitions.size() - before);
        }
        return series.id;
    }

    private void defined(int bytes) {
        stringBytes += bytes;
        int last = cuts.isEmpty() ? 0 : cuts.get(cuts.size() - 1);
        if (definitions.size() - last >= BODY_BYTES) {
            cuts.add(definitions.size());
        }
    }
}
