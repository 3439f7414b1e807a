package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.RecordCursor;
import io.tachograph.bootstrap.RecordTypes;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.testing.Call;
import io.tachograph.testing.Declared;
import io.tachograph.testing.Decoder;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Declared records between the events of calls, from the ring to the decoder. */
class DeclaredRingTest {
    private static final int ORDER =
            RecordTypes.shared().id("test_order", "SJ", "customer", "", "items", "pcs");
    private static final int NUMBER = RecordTypes.shared().id("test_number", "J", "n", "");

    private final Session session = new Session(7, 9);
    private final Buffers buffers;
    private final Dictionary dictionary = new Dictionary(Operations.shared());
    private final Totals totals = new Totals();
    private final Outbox outbox = new Outbox(dictionary, 1 << 20);
    private final WallClock clock = new WallClock();
    private final Decoder decoder = new Decoder(session);
    private final RingReader reader;
    private final ThreadBuffer buffer;
    private int dictionarySent;
    private int typesSent;

    DeclaredRingTest() {
        Buffers.Options options = new Buffers.Options();
        options.words = 256;
        buffers = new Buffers(session, options);
        buffer = buffers.current();
        clock.update();
        reader =
                new RingReader(
                        buffer,
                        outbox,
                        clock,
                        totals,
                        new CallCounts(),
                        dictionary,
                        new DeclaredRecord(dictionary, Map.of("service", "s")));
    }

    private boolean order(String customer, long items) {
        RecordCursor cursor = buffer.records();
        if (!cursor.begin(ORDER, 1, 1)) {
            return false;
        }
        cursor.put(customer);
        cursor.put(items);
        cursor.end();
        return true;
    }

    private int enter(String name) {
        return buffer.enter(Operations.shared().id(Operations.METHOD, name));
    }

    /** Passes all frames to the decoder, as to a server. */
    private void pass() {
        reader.read();
        outbox.close();
        for (Outbox.Sent sent = outbox.next(); sent != null; sent = outbox.next()) {
            byte[] words = dictionary.frame(dictionarySent, sent.dictionarySize);
            if (words != null) {
                dictionarySent = dictionary.end(dictionarySent, sent.dictionarySize);
                decoder.dict(body(words));
                continue;
            }
            byte[] types = dictionary.recordTypes().frame(typesSent, sent.recordTypesSize);
            if (types != null) {
                typesSent = dictionary.recordTypes().end(typesSent, sent.recordTypesSize);
                decoder.dict(body(types));
                continue;
            }
            decoder.data(body(sent.frame));
            outbox.sent();
            outbox.acknowledge(sent.seq);
        }
    }

    private static byte[] body(byte[] frame) {
        return Arrays.copyOfRange(frame, 12, frame.length);
    }

    @Test
    void aRecordBelongsToTheInnermostOpenCall() {
        assertTrue(order("before", -1));
        int outer = enter("outer");
        assertTrue(order("outer", Long.MAX_VALUE));
        int inner = enter("inner");
        assertTrue(order(null, Long.MIN_VALUE));
        buffer.attribute(inner, "key", "value");
        buffer.exit(inner);
        assertTrue(order("outer again", 0));
        buffer.exit(outer);
        assertTrue(order("after", 1));
        pass();
        Call root = decoder.roots.get(0);
        Call child = root.children.get(0);
        assertEquals("value", child.attributes.get("key"), "objects must be read in the order of their words");
        List<String> got = new ArrayList<>();
        for (Declared record : decoder.declared) {
            String where =
                    record.span() == null
                            ? "none"
                            : record.span().equals(child.span) ? "inner" : "outer";
            assertTrue(record.span() == null || record.trace().equals(root.traceId));
            assertTrue(!where.equals("outer") || record.span().equals(root.span));
            got.add(where + " " + record.values());
            assertEquals(Map.of("service", "s", "__name__", "test_order"), record.labels());
            assertTrue(
                    !where.equals("inner")
                            || record.at() >= child.start && record.at() <= child.end);
        }
        assertEquals(
                List.of(
                        "none {customer=before, items=-1}",
                        "outer {customer=outer, items=9223372036854775807}",
                        "inner {customer=null, items=-9223372036854775808}",
                        "outer {customer=outer again, items=0}",
                        "none {customer=after, items=1}"),
                got);
        assertEquals(5, totals.entriesSent());
    }

    @Test
    void aFullRingDropsWholeRecordsAndKeepsSpaceForExits() {
        int call = enter("outer");
        int kept = 0;
        for (int at = 0; at < 500; at++) {
            kept += order("n" + at, at) ? 1 : 0;
        }
        assertTrue(kept > 20 && kept < 128, "kept " + kept);
        assertEquals(500 - kept, buffer.records().dropped());
        buffer.exit(call);
        pass();
        assertEquals(kept, decoder.declared.size());
        for (int at = 0; at < kept; at++) {
            assertEquals("n" + at, decoder.declared.get(at).values().get("customer"));
        }
        assertEquals(1, decoder.callsEnded);
        assertTrue(order("room again", 1));
        pass();
        assertEquals(kept + 1, decoder.declared.size());
    }

    @Test
    void typesPastTheBoundAndRecordsLongerThanTheRingAreDropped() {
        assertFalse(buffer.records().begin(0, 0, 0));
        assertFalse(buffer.records().begin(NUMBER, 300, 0));
        assertFalse(buffer.records().begin(ORDER, 1, 40), "a record of 40 objects was accepted, but the side ring holds 32");
        assertEquals(3, buffer.records().dropped());
        RecordTypes few = new RecordTypes(2, 60);
        assertEquals(1, few.id("a", "J", "x", ""));
        assertEquals(1, few.id("a", "J", "x", ""), "the same declaration has the same id");
        assertEquals(0, few.id("c".repeat(60), "J", "x", ""), "too many characters");
        assertEquals(2, few.id("a", "J", "x", "s"), "a field with another unit makes another type");
        assertEquals(0, few.id("b", "J", "x", ""), "too many types");
        for (String kinds : new String[] {"Q", "JJ", ""}) {
            assertEquals(0, new RecordTypes(2, 60).id("a", kinds, "x", ""), kinds);
        }
    }

    @Test
    void aRecordWithoutEndIsNotPublished() {
        RecordCursor cursor = buffer.records();
        assertTrue(cursor.begin(ORDER, 1, 1));
        cursor.put("half");
        assertTrue(order("whole", 2));
        pass();
        assertEquals(1, decoder.declared.size());
        assertEquals("whole", decoder.declared.get(0).values().get("customer"));
    }

    @Test
    void recordsDroppedByAFullQueueAreCounted() {
        Outbox small = new Outbox(dictionary, 0);
        RingReader full =
                new RingReader(
                        buffer,
                        small,
                        clock,
                        totals,
                        new CallCounts(),
                        dictionary,
                        new DeclaredRecord(dictionary, Map.of()));
        assertTrue(order("nobody", 1));
        full.read();
        assertEquals(1, totals.entriesDropped());
        assertTrue(order("here", 2));
        pass();
        assertEquals("here", decoder.declared.get(0).values().get("customer"));
    }
}
