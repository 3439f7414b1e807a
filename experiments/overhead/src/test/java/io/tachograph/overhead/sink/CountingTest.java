package io.tachograph.overhead.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.zip.DeflaterOutputStream;

/** Every call is counted once. Undecodable bytes are refused or become a fault. */
class CountingTest {
    private static final String EXECUTION = "kieker.common.record.controlflow.OperationExecutionRecord";
    private static final String BEFORE = "kieker.common.record.flow.trace.operation.BeforeOperationEvent";

    /** The case segment-simple of testdata/wire/data.vec. It has three calls. */
    private static final String SEGMENT =
            "1e0000000300000094b8cb46080020"
                    + "78a748217a180313000101b817060101f1010380e2091f02d80e42";

    // ---- Tachograph ----

    @Test
    void callsOfTachographFramesAreCounted() throws IOException {
        byte[] hello = NativeFrames.frame(1, filled("tacho"));
        byte[] data = HexFormat.of().parseHex(SEGMENT);
        Tally tally = new Tally();
        byte[] answers = serve(new NativeFrames("off:a.B"), tally, hello, data, data);
        assertEquals(12, tally.halves.get());
        assertEquals(hello.length + 2L * data.length, tally.bytes.get());
        assertEquals("WELCOME PROBES ACK ACK", types(answers));
    }

    @Test
    void dropsAndSwitchesReportedByOurAgentAreCounted() throws IOException {
        Tally tally = new Tally();
        byte[] ping = NativeFrames.frame(4, filled("\u0007\u0000\u0000\u0000"));
        byte[] probed = NativeFrames.frame(6, filled("\u0001\u0000\u0002\u0003\u0000\u0000"));
        serve(new NativeFrames(""), tally, ping, probed);
        assertEquals(7, tally.dropped.get());
        assertEquals(5, tally.switched.get());
    }

    @Test
    void invalidTachographFramesAreRefused() {
        byte[] cut = NativeFrames.frame(3, filled("\u0001"));
        assertThrows(Receiver.MalformedException.class, () -> serve(new NativeFrames(""), new Tally(), cut));
        byte[] long_ = HexFormat.of().parseHex("ffffff7f03000000ffffffff");
        assertThrows(Receiver.MalformedException.class, () -> serve(new NativeFrames(""), new Tally(), long_));
        assertThrows(IllegalArgumentException.class, () -> new NativeFrames("on:a.B"));
    }

    // ---- Kieker ----

    @Test
    void recordsOfKiekerAreCounted() throws IOException {
        Tally tally = new Tally();
        byte[] stream = kieker(EXECUTION, 44, BEFORE, 28, BEFORE, 28);
        serve(new KiekerStream(), tally, stream);
        assertEquals(4, tally.halves.get());
        assertEquals(stream.length, tally.bytes.get());
    }

    @Test
    void unknownRecordsOfKiekerAreRefused() throws IOException {
        byte[] unknown = kieker("kieker.common.record.system.CPUUtilizationRecord", 72);
        assertThrows(Receiver.MalformedException.class, () -> serve(new KiekerStream(), new Tally(), unknown));
        byte[] undefined = HexFormat.of().parseHex("00000009");
        assertThrows(Receiver.MalformedException.class, () -> serve(new KiekerStream(), new Tally(), undefined));
        byte[] text = HexFormat.of().parseHex("ffffffff00000000f0000000");
        assertThrows(Receiver.MalformedException.class, () -> serve(new KiekerStream(), new Tally(), text));
    }

    @Test
    void filesOfKiekerAreCounted(@TempDir Path folder) throws IOException {
        Path log = Files.createDirectory(folder.resolve("kieker-1"));
        Files.writeString(log.resolve("kieker.map"), "$0=" + EXECUTION + "\n$1=void a.B.c()\n");
        Files.write(log.resolve("1.bin"), new byte[2 * 56]);
        Files.write(log.resolve("2.bin"), new byte[56]);
        Tally whole = KiekerFiles.count(folder);
        assertEquals(3, whole.halves.get() / 2);
        assertEquals("", whole.fault.get());
        Files.write(log.resolve("3.bin"), new byte[57]);
        assertEquals("3.bin: the file ends inside a record", KiekerFiles.count(folder).fault.get());
    }

    // ---- OTLP ----

    @Test
    void spansOfOtlpRequestsAreCounted() throws IOException {
        byte[] span = field(2, new byte[] {8, 1});
        byte[] scope = field(2, join(field(1, new byte[3]), span, span));
        byte[] body = join(field(1, join(field(1, new byte[4]), scope, scope)), field(1, scope));
        Tally tally = new Tally();
        byte[] answers =
                serve(
                        new OtlpRequests(),
                        tally,
                        text("POST /v1/traces HTTP/1.1\r\nContent-Length: " + body.length + "\r\n\r\n"),
                        body,
                        text("POST /v1/traces HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
                        text(Integer.toHexString(body.length) + "\r\n"),
                        body,
                        text("\r\n0\r\n\r\n"),
                        text("POST /v1/metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"));
        assertEquals(12, tally.halves.get() / 2);
        assertEquals(3, new String(answers, StandardCharsets.US_ASCII).split("200 OK").length - 1);
    }

    @Test
    void unreadableRequestsAreRefused() {
        for (String request :
                new String[] {
                    "Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
                    "Content-Length: 1\r\n\r\n\u000f",
                    "Content-Length: 2\r\n\r\n\n\u0009",
                    "Content-Length: 99999999999\r\n\r\n",
                }) {
            assertThrows(
                    Receiver.MalformedException.class,
                    () ->
                            serve(
                                    new OtlpRequests(),
                                    new Tally(),
                                    text("POST /v1/traces HTTP/1.1\r\n" + request)),
                    request);
        }
    }

    // ---- Elastic ----

    @Test
    void eventsOfElasticAreCounted() throws IOException {
        byte[] lines =
                text(
                        "{\"metadata\":{}}\n{\"span\":{\"a\":\"{\\\"span\\\"\"}}\n"
                                + "{\"transaction\":{}}\n{\"spanner\":{}}\n{\"span\":1}\n");
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (DeflaterOutputStream out = new DeflaterOutputStream(compressed)) {
            out.write(lines);
        }
        byte[] body = compressed.toByteArray();
        String head = "POST /intake/v2/events HTTP/1.1\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n";
        byte[] chunks =
                join(text(head + "3\r\n"), Arrays.copyOf(body, 3), text("\r\n" + Integer.toHexString(body.length - 3) + "\r\n"),
                        Arrays.copyOfRange(body, 3, body.length), text("\r\n0\r\n\r\n"));
        Tally tally = new Tally();
        byte[] answers = serve(new ElasticEvents(), tally, text("GET / HTTP/1.1\r\n\r\n"), chunks, chunks);
        assertEquals(6, tally.halves.get() / 2);
        assertEquals(2L * lines.length, tally.bytes.get());
        assertEquals(3, new String(answers, StandardCharsets.US_ASCII).split("HTTP/1.1 ").length - 1);
    }

    // ---- helpers ----

    /** Returns the answers to the sent bytes. */
    private static byte[] serve(Receiver receiver, Tally tally, byte[]... sent) throws IOException {
        ByteArrayOutputStream answers = new ByteArrayOutputStream();
        try {
            receiver.serve(new ByteArrayInputStream(join(sent)), answers, tally);
        } catch (EOFException e) {
            // The receiver has read all bytes.
        }
        return answers.toByteArray();
    }

    private static ByteBuffer filled(String bytes) {
        return ByteBuffer.allocate(64).put(bytes.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    /** A length-delimited field of a protobuf message. */
    private static byte[] field(int number, byte[] content) {
        return join(new byte[] {(byte) (number << 3 | 2), (byte) content.length}, content);
    }

    /**
     * Writes a definition and a record for each pair of {@code records}: a class name, and the
     * number of bytes of the fields of its records.
     */
    private static byte[] kieker(Object... records) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(all);
        for (int at = 0; at < records.length; at += 2) {
            byte[] name = text((String) records[at]);
            out.writeInt(-1);
            out.writeInt(at);
            out.writeInt(name.length);
            out.write(name);
            out.writeInt(at);
            out.writeLong(at);
            out.write(new byte[(int) records[at + 1]]);
        }
        return all.toByteArray();
    }

    private static String types(byte[] frames) {
        StringBuilder names = new StringBuilder();
        ByteBuffer rest = ByteBuffer.wrap(frames).order(ByteOrder.LITTLE_ENDIAN);
        while (rest.hasRemaining()) {
            int length = rest.getInt();
            int type = rest.get();
            rest.position(rest.position() + 7 + length);
            names.append(
                    switch (type) {
                        case 65 -> "WELCOME ";
                        case 66 -> "ACK ";
                        case 71 -> "PROBES ";
                        default -> type + " ";
                    });
        }
        return names.toString().strip();
    }
}
