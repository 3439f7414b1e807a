package io.tachograph.core.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.core.log.Messages;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;

/** The bytes match the vectors of the Rust tests. */
class VectorTest {
    private static void assertFrame(Vectors.Case expected, byte[] frame) {
        assertEquals(
                HexFormat.of().formatHex(expected.frame()),
                HexFormat.of().formatHex(frame),
                expected.name());
    }

    private static FrameReader read(byte[] bytes) throws FrameReader.Damaged {
        FrameReader frames = new FrameReader();
        frames.push(ByteBuffer.wrap(bytes));
        assertTrue(frames.next());
        return frames;
    }

    @Test
    void pingAndByeMatchTheVectors() throws Exception {
        Vectors.Case expected = Vectors.read("control.vec").get("ping");
        Bytes frame = Frame.begin(new Bytes(16));
        for (String key :
                new String[] {
                    "executions_dropped", "samples_dropped", "entries_dropped", "bytes_buffered"
                }) {
            frame.varint(expected.number(key));
        }
        Frame.finish(frame, Wire.PING);
        assertFrame(expected, frame.copy());
        assertFrame(Vectors.read("control.vec").get("bye"), Frame.of(Wire.BYE, new byte[0], 0, 0));
    }

    @ParameterizedTest
    @ValueSource(strings = {"token-missing", "token-forbidden"})
    void refusalsOfATokenAreRead(String name) throws Exception {
        Vectors.Case given = Vectors.read("token.vec").get(name);
        FrameReader frames = read(given.frame());
        assertEquals(Wire.ERROR, frames.type());
        BodyReader body = frames.body();
        assertEquals(given.number("code"), body.varint());
        assertEquals(given.one("message"), body.string());
        assertTrue(body.atEnd());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "welcome-known-session",
                "ack-of-a-long-session",
                "reject",
                "wait",
                "pong",
                "error",
                "error-without-message"
            })
    void framesOfTheServerAreRead(String name) throws Exception {
        Vectors.Case given = Vectors.read("control.vec").get(name);
        FrameReader frames = read(given.frame());
        BodyReader body = frames.body();
        switch (frames.type()) {
            case Wire.WELCOME -> {
                assertEquals(given.number("version"), body.u8());
                assertEquals(given.number("acked"), body.varint());
                assertEquals(given.number("frame_body_bytes_max"), body.varint());
                assertEquals(given.number("heartbeat_ms"), body.varint());
            }
            case Wire.ACK -> assertEquals(given.number("seq"), body.varint());
            case Wire.REJECT -> {
                assertEquals(given.number("seq"), body.varint());
                assertEquals(given.number("record"), body.varint());
                assertEquals(given.one("reason"), body.string());
            }
            case Wire.WAIT -> assertEquals(given.number("ms"), body.varint());
            case Wire.PONG -> assertEquals(given.number("time"), body.u64());
            default -> {
                assertEquals(Wire.ERROR, frames.type());
                assertEquals(given.number("code"), body.varint());
                assertEquals(given.one("message"), body.string());
            }
        }
        assertTrue(body.atEnd());
    }

    @Test
    void damagedFramesAreDetected() throws Exception {
        byte[] frame = Vectors.read("control.vec").get("error").frame();
        for (int at = 0; at < frame.length; at++) {
            byte[] damaged = frame.clone();
            damaged[at] ^= 0x10;
            FrameReader frames = new FrameReader();
            frames.push(ByteBuffer.wrap(damaged));
            if (at < 4) {
                // With a larger length, the reader waits for more bytes, or refuses a length that
                // no server sends. With a smaller length, the checksum is wrong.
                try {
                    assertFalse(frames.next());
                } catch (FrameReader.Damaged e) {
                    assertTrue(
                            e.getMessage().contains("bytes")
                                    || e.getMessage().contains("checksum"));
                }
            } else {
                assertThrows(FrameReader.Damaged.class, frames::next, "byte " + at);
            }
        }
    }

    @Test
    void anAnswerInHttpIsRecognised() {
        FrameReader frames = new FrameReader();
        String answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
        frames.push(ByteBuffer.wrap(answer.getBytes(StandardCharsets.US_ASCII)));
        FrameReader.Damaged said = assertThrows(FrameReader.Damaged.class, frames::next);
        assertEquals(Messages.SERVER_IS_HTTP, said.getMessage());
    }

    /**
     * Returns a dictionary with the texts and operations of {@code data.vec}. The ids are the same,
     * because ids are assigned in the order of use.
     */
    private static Dictionary dictionary(Vectors.Case dict) {
        Dictionary dictionary = new Dictionary(Operations.shared());
        for (Map.Entry<String, String> key : dict.keys()) {
            String[] words = key.getValue().split(" ", 4);
            if (key.getKey().equals("define") && words[0].equals("text")) {
                assertEquals(
                        Integer.parseInt(words[1]),
                        dictionary.text(key.getValue().split(" ", 3)[2]));
            } else if (key.getKey().equals("define") && words[0].equals("operation")) {
                int id = Operations.shared().id(Integer.parseInt(words[2]), words[3]);
                assertEquals(Integer.parseInt(words[1]), dictionary.operation(id));
            }
        }
        return dictionary;
    }

    @Test
    void definitionsMatchTheVectors() throws Exception {
        Vectors.Case expected = Vectors.read("data.vec").get("dict");
        Dictionary dictionary = dictionary(expected);
        // Only the part before the series is compared, because the ids of the series in the vector
        // have a gap.
        byte[] frame = dictionary.frame(0, dictionary.size());
        String body = HexFormat.of().formatHex(frame, Wire.FRAME_HEADER_BYTES, frame.length);
        assertEquals(
                body,
                HexFormat.of().formatHex(expected.frame(), Wire.FRAME_HEADER_BYTES, frame.length));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "segment-simple",
                "segment-full",
                "segment-of-another-segments-trace",
                "segment-continued",
                "segment-continued-end"
            })
    void segmentsMatchTheVectors(String name) throws Exception {
        Map<String, Vectors.Case> cases = Vectors.read("data.vec");
        Vectors.Case expected = cases.get(name);
        Dictionary dictionary = dictionary(cases.get("dict"));
        SegmentRecord record = new SegmentRecord(dictionary);
        SegmentRecord.Head head = head(expected, cases.get("dict"));
        long now = 1_000;
        for (Map.Entry<String, String> key : expected.keys()) {
            String[] words = key.getValue().split(" ", 4);
            switch (key.getKey()) {
                case "carried" ->
                        record.carry(
                                operation(cases.get("dict"), words[0]),
                                Integer.parseInt(words[1]),
                                Long.parseLong(words[2]));
                case "event" -> {
                    now += Long.parseLong(words[1]);
                    switch (words[0]) {
                        case "enter" -> record.enter(now, operation(cases.get("dict"), words[2]));
                        case "exit" -> record.exit(now);
                        default -> record.exitFailed(now);
                    }
                }
                case "attribute" -> attribute(record, cases.get("dict"), words);
                default -> {}
            }
        }
        Bytes content = new Bytes(64);
        record.write(head, expected.number("start"), content);
        Bytes frame =
                Frame.begin(new Bytes(64))
                        .varint(expected.number("seq"))
                        .u64(expected.number("base"));
        frame.u8(Wire.TAG_SEGMENT).varint(content.size()).raw(content);
        Frame.finish(frame, Wire.DATA);
        assertFrame(expected, frame.copy());
        assertSpans(expected);
    }

    private static SegmentRecord.Head head(Vectors.Case given, Vectors.Case dict) {
        SegmentRecord.Head head = new SegmentRecord.Head();
        head.segment = given.number("number");
        head.part = given.has("part") ? (int) given.number("part") : 0;
        head.firstCall = given.has("first_call") ? (int) given.number("first_call") : 0;
        head.thread = text(dict, given.one("thread"));
        if (given.has("parent")) {
            String span = given.one("parent");
            head.parent =
                    given.has("trace")
                            ? Context.parse("00-" + given.one("trace") + "-" + span + "-01")
                            : Context.local(
                                    0,
                                    0,
                                    Long.parseUnsignedLong(span, 16),
                                    given.number("trace_of"));
        }
        return head;
    }

    private static String text(Vectors.Case dict, String id) {
        return defined(dict, "text " + id + " ");
    }

    private static int operation(Vectors.Case dict, String id) {
        String[] words = defined(dict, "operation " + id + " ").split(" ", 2);
        return Operations.shared().id(Integer.parseInt(words[0]), words[1]);
    }

    private static String defined(Vectors.Case dict, String prefix) {
        return dict.keys().stream()
                .map(Map.Entry::getValue)
                .filter(value -> value.startsWith(prefix))
                .findFirst()
                .orElseThrow()
                .substring(prefix.length());
    }

    private static void attribute(SegmentRecord record, Vectors.Case dict, String[] words) {
        int call = Integer.parseInt(words[0]);
        String key = text(dict, words[1]);
        switch (words[2]) {
            case "integer" -> assertTrue(record.attribute(call, key, Long.parseLong(words[3])));
            case "text" -> assertTrue(record.attribute(call, key, text(dict, words[3])));
            default -> assertTrue(record.attribute(call, key, words[3]));
        }
    }

    private static void assertSpans(Vectors.Case given) {
        String id = given.one("session");
        Session session =
                new Session(
                        Long.parseUnsignedLong(id.substring(0, 16), 16),
                        Long.parseUnsignedLong(id.substring(16), 16));
        for (Map.Entry<String, String> key : given.keys()) {
            if (key.getKey().equals("span")) {
                String[] words = key.getValue().split(" ");
                long span =
                        Session.mix64(
                                session.base(given.number("number")) + Long.parseLong(words[0]));
                assertEquals(words[1], HexFormat.of().toHexDigits(span));
            }
        }
    }
}
