package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.core.wire.BodyReader;
import io.tachograph.core.wire.Bytes;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Frame;
import io.tachograph.core.wire.FrameReader;
import io.tachograph.core.wire.ProbeReport;
import io.tachograph.core.wire.ProbeRules;
import io.tachograph.core.wire.SegmentRecord;
import io.tachograph.core.wire.Wire;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Bounds on the data that the agent sends and accepts. */
class BoundsTest {
    private static final int HELLO_HEAD = 5 + 2 + 16;

    /**
     * Offers this many items, or one item of this many bytes.
     *
     * @return number of accepted items or bytes; -1 if everything is refused
     */
    private static int taken(String what, int count) throws Exception {
        try {
            switch (what) {
                case "body":
                    return body(count);
                case "rules":
                    return rules(count);
                case "pairs":
                    return pairs(count);
                case "moved":
                    return moved(count);
                case "attributes":
                    return attributes(count);
                case "value":
                    return value(count);
                case "operation":
                    return operation(count);
                default:
                    return fault(count);
            }
        } catch (FrameReader.Damaged e) {
            return -1;
        }
    }

    private static BodyReader bodyOf(byte[] frame) {
        return new BodyReader(Arrays.copyOfRange(frame, Wire.FRAME_HEADER_BYTES, frame.length));
    }

    private static int body(int bytes) throws FrameReader.Damaged {
        Bytes frame = Frame.begin(new Bytes(64)).raw(new byte[bytes], 0, bytes);
        Frame.finish(frame, Wire.PONG);
        FrameReader frames = new FrameReader();
        frames.push(ByteBuffer.wrap(frame.copy()).order(ByteOrder.LITTLE_ENDIAN));
        return frames.next() ? bytes : 0;
    }

    private static int rules(int count) throws FrameReader.Damaged {
        Bytes body = new Bytes(64).varint(1).varint(count);
        for (int at = 0; at < count; at++) {
            body.u8(1).string("a.B");
        }
        return ProbeRules.read(new BodyReader(body.copy())).rules().size();
    }

    private static int pairs(int count) throws FrameReader.Damaged {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (int at = 0; at < count; at++) {
            pairs.put("key-" + at, "value");
        }
        byte[] frame = Hello.frame(new Session(1, 2), pairs, new byte[0]);
        int from = Wire.FRAME_HEADER_BYTES + HELLO_HEAD;
        BodyReader body = new BodyReader(Arrays.copyOfRange(frame, from, frame.length));
        int claimed = (int) body.varint();
        int read = 0;
        while (!body.atEnd()) {
            assertEquals("key-" + read++, body.string());
            body.string();
        }
        assertEquals(claimed, read);
        return read;
    }

    private static int moved(int count) throws FrameReader.Damaged {
        ProbeReport report = new ProbeReport();
        for (int at = 0; at < count; at++) {
            report.moved("m" + at, "rate", at);
        }
        BodyReader body = bodyOf(report.frame());
        for (int field = 0; field < 5; field++) {
            body.varint(); // revision, three counts, number of rules (0)
        }
        return (int) body.varint();
    }

    /**
     * Length of the text {@code cut}, bytes. -2 if {@code cut} is neither the whole text nor its
     * beginning with an ellipsis.
     */
    private static int kept(String cut, int bytes) {
        int length = cut.getBytes(StandardCharsets.UTF_8).length;
        return cut.equals("x".repeat(bytes)) ? bytes : cut.endsWith("x…") ? length : -2;
    }

    private static int fault(int bytes) throws FrameReader.Damaged {
        BodyReader body = bodyOf(new ProbeReport().rule(1, "x".repeat(bytes)).frame());
        for (int field = 0; field < 7; field++) {
            // revision, three counts, number of rules, position and methods of the rule
            body.varint();
        }
        return kept(body.string(), bytes);
    }

    private static int attributes(int count) {
        SegmentRecord record = new SegmentRecord(new Dictionary(Operations.shared()));
        int taken = 0;
        for (int at = 0; at < count; at++) {
            taken += record.attribute(0, "key", at) ? 1 : 0;
        }
        return taken;
    }

    private static int value(int bytes) throws FrameReader.Damaged {
        SegmentRecord record = new SegmentRecord(new Dictionary(Operations.shared()));
        record.attribute(0, "key", "x".repeat(bytes));
        SegmentRecord.Head head = new SegmentRecord.Head();
        head.thread = "t";
        Bytes out = new Bytes(64);
        record.write(head, 0, out);
        BodyReader body = new BodyReader(out.copy());
        body.u8(); // flags
        for (int field = 0; field < 7; field++) {
            // segment, thread, start, number of events (0), number of attributes (1), call, key
            body.varint();
        }
        assertEquals(Wire.FORM_STRING, body.u8());
        return kept(body.string(), bytes);
    }

    private static int operation(int bytes) throws FrameReader.Damaged {
        Dictionary dictionary = new Dictionary(Operations.shared());
        dictionary.operation(Operations.shared().id(Operations.METHOD, "x".repeat(bytes)));
        BodyReader body = bodyOf(dictionary.frame(0, dictionary.size()));
        assertEquals(Wire.DICT_OPERATION, body.u8());
        body.varint();
        body.u8();
        return kept(body.string(), bytes);
    }

    @ParameterizedTest
    @CsvSource({
        "body, 1048576, refused",
        "rules, 1000, refused",
        "pairs, 32, cut",
        "moved, 256, cut",
        "fault, 512, cut",
        "attributes, 4096, cut",
        "value, 4096, cut",
        "operation, 8192, cut",
    })
    void theBoundIsAcceptedAndOneMoreIsNot(String what, int bound, String past) throws Exception {
        assertEquals(bound, taken(what, bound));
        assertEquals(past.equals("cut") ? bound : -1, taken(what, bound + 1));
    }
}
