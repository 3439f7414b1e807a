package io.tachograph.testing;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.IntFunction;

/** Definition of a declared record type in DICT. */
public record RecordType(String name, List<Field> fields) {
    public record Field(int type, String name, String unit) {}

    static RecordType read(Fields in) {
        String name = in.string();
        List<Field> fields = new ArrayList<>();
        for (int n = in.count(); n > 0; n--) {
            fields.add(new Field(in.u8(), in.string(), in.string()));
        }
        Fields.check(fields.size() <= 64, fields.size() + " fields");
        return new RecordType(name, fields);
    }

    /** Reads the values of a record. Times are ns since the epoch. */
    Map<String, Object> values(Fields in, byte[] nulls, IntFunction<String> text) {
        Map<String, Object> values = new LinkedHashMap<>();
        for (int at = 0; at < fields.size(); at++) {
            boolean isNull = at / 8 < nulls.length && (nulls[at / 8] >> at % 8 & 1) != 0;
            values.put(fields.get(at).name, isNull ? null : value(fields.get(at).type, in, text));
        }
        return values;
    }

    private static Object value(int type, Fields in, IntFunction<String> text) {
        return switch (type) {
            case 1 -> in.u8() == 1;
            case 2, 9 -> in.zigzag();
            case 3 -> Double.longBitsToDouble(in.u64());
            case 4 -> in.string();
            case 5 -> text.apply(in.count());
            case 6 -> new UUID(in.id8(), in.id8());
            case 7 -> in.varint();
            case 8 -> Float.intBitsToFloat(in.u8() | in.u8() << 8 | in.u8() << 16 | in.u8() << 24);
            default -> throw new IllegalStateException("field of type " + type);
        };
    }
}
