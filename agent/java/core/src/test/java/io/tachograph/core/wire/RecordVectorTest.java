package io.tachograph.core.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.RecordTypes;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Declared records match the vectors of the Rust tests. */
class RecordVectorTest {
    private final RecordTypes types = new RecordTypes(8, 1_000);
    private final Dictionary dictionary = new Dictionary(Operations.shared());
    private final DeclaredRecord record = new DeclaredRecord(dictionary, Map.of());

    /** Declares the types in the order in which the vectors number them. */
    RecordVectorTest() {
        assertEquals(
                1,
                types.id("shop_order_placed", "SJD", "customer", "", "items", "", "total", "EUR"));
        String[] everything = {
            "truth", "", "whole", "", "real", "m/s", "words", "", "reason", "", "id", "", "short",
            "°C", "at", ""
        };
        assertEquals(2, types.id("shop_everything", "ZJDSEUFT", everything));
        assertEquals(1, dictionary.text("GIVEN_UP"));
        assertEquals(2, dictionary.text("straße-漢字"));
        // A series gets its id when it is first used. The vectors have the ids 1 and 2.
        Bytes nowhere = new Bytes(64);
        for (int id = 1; id <= 2; id++) {
            assertTrue(record.write(types.entry(id), outside(), 0, nowhere));
        }
    }

    private static DeclaredRecord.Call outside() {
        DeclaredRecord.Call call = new DeclaredRecord.Call();
        call.call = -1;
        return call;
    }

    @Test
    void definitionsMatchTheVectors() throws Exception {
        Vectors.Case expected = Vectors.read("records.vec").get("dict");
        byte[] frame = dictionary.recordTypes().frame(0, dictionary.recordTypes().size());
        String body = HexFormat.of().formatHex(frame, Wire.FRAME_HEADER_BYTES, frame.length);
        String all = HexFormat.of().formatHex(expected.frame());
        assertTrue(all.contains(body), body);
    }

    @ParameterizedTest
    @ValueSource(strings = {"order", "in-calls", "every-type"})
    void recordsMatchTheVectors(String name) throws Exception {
        Vectors.Case expected = Vectors.read("records.vec").get(name);
        Bytes frame =
                Frame.begin(new Bytes(64))
                        .varint(expected.number("seq"))
                        .u64(expected.number("base"));
        for (List<Map.Entry<String, String>> keys : split(expected)) {
            Vectors.Case one = new Vectors.Case(name, keys, null);
            RecordTypes.Entry type = types.entry((int) one.number("type"));
            fill(type, keys);
            Bytes content = new Bytes(64);
            assertTrue(record.write(type, call(one), one.number("dt"), content));
            frame.u8(Wire.TAG_RECORD).varint(content.size()).raw(content);
        }
        Frame.finish(frame, Wire.DATA);
        assertEquals(
                HexFormat.of().formatHex(expected.frame()), HexFormat.of().formatHex(frame.copy()));
    }

    private static List<List<Map.Entry<String, String>>> split(Vectors.Case given) {
        List<List<Map.Entry<String, String>>> records = new ArrayList<>();
        for (Map.Entry<String, String> key : given.keys()) {
            if (key.getKey().equals("record")) {
                records.add(new ArrayList<>());
            }
            if (!records.isEmpty()) {
                records.get(records.size() - 1).add(key);
            }
        }
        return records;
    }

    private static DeclaredRecord.Call call(Vectors.Case given) {
        if (!given.has("call")) {
            return outside();
        }
        DeclaredRecord.Call call = new DeclaredRecord.Call();
        call.call = (int) given.number("call");
        call.segment = given.number("number");
        if (given.has("trace")) {
            call.parent = Context.parse("00-" + given.one("trace") + "-00f067aa0ba902b7-01");
        } else if (given.has("trace_of")) {
            call.parent = Context.local(0, 0, 1, given.number("trace_of"));
        }
        return call;
    }

    private void fill(RecordTypes.Entry type, List<Map.Entry<String, String>> keys) {
        int word = 0;
        int object = 0;
        for (Map.Entry<String, String> key : keys) {
            if (key.getKey().equals("value")) {
                String[] parts = key.getValue().split(" ", 2);
                String text = parts.length > 1 ? parts[1] : "";
                char kind = type.kinds.charAt(word + object);
                if (RecordTypes.isWord(kind)) {
                    record.words[word++] = word(parts[0], text);
                } else {
                    record.objects[object++] = object(parts[0], text);
                }
            }
        }
    }

    private static long word(String form, String text) {
        return switch (form) {
            case "bool" -> text.equals("true") ? 1 : 0;
            case "i64" -> Long.parseLong(text);
            case "null" -> 0;
            default -> Long.parseUnsignedLong(text, 16);
        };
    }

    private static Object object(String form, String text) {
        return switch (form) {
            case "null" -> null;
            case "string" -> text;
            case "text" -> text.equals("1") ? "GIVEN_UP" : "straße-漢字";
            case "uuid" -> UUID.fromString(text);
            default -> {
                long ns = Long.parseLong(text);
                yield Instant.ofEpochSecond(ns / 1_000_000_000, ns % 1_000_000_000);
            }
        };
    }
}
