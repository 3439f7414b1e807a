package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.testing.Call;
import io.tachograph.testing.Decoder;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Map;

/** Threads that end without the exits of their calls. */
class EndedThreadTest {
    private static final int OUTER = Operations.shared().id(Operations.METHOD, "outer");
    private static final int INNER = Operations.shared().id(Operations.METHOD, "inner");

    private final Session session = new Session(7, 9);
    private final Dictionary dictionary = new Dictionary(Operations.shared());
    private final Outbox outbox = new Outbox(dictionary, 1 << 20);
    private final Decoder decoder = new Decoder(session);
    private final ThreadBuffer buffer = new Buffers(session, new Buffers.Options()).current();
    private final RingReader reader;

    EndedThreadTest() {
        WallClock clock = new WallClock();
        clock.update();
        reader =
                new RingReader(
                        buffer,
                        outbox,
                        clock,
                        new Totals(),
                        new CallCounts(),
                        dictionary,
                        new DeclaredRecord(dictionary, Map.of()));
    }

    /** Passes all frames to the decoder, as to a server. */
    private void pass() {
        outbox.close();
        int defined = 0;
        for (Outbox.Sent sent = outbox.next(); sent != null; sent = outbox.next()) {
            byte[] words = dictionary.frame(defined, sent.dictionarySize);
            if (words != null) {
                defined = dictionary.end(defined, sent.dictionarySize);
                decoder.dict(Arrays.copyOfRange(words, 12, words.length));
                continue;
            }
            decoder.data(Arrays.copyOfRange(sent.frame, 12, sent.frame.length));
            outbox.sent();
        }
    }

    @Test
    void anOpenCallEndsAtTheLastEventOfItsSegmentAlsoIfTheEventWasSent() {
        buffer.enter(OUTER);
        long since = System.nanoTime();
        while (System.nanoTime() - since < 1_000_000) {
            Thread.onSpinWait();
        }
        buffer.exit(buffer.enter(INNER));
        reader.read();
        reader.flush();
        reader.finish();
        pass();
        Call outer = decoder.roots.get(0);
        Call inner = outer.children.get(0);
        assertEquals(inner.end, outer.end);
        assertTrue(outer.failed);
        assertTrue(outer.end > outer.start);
    }
}
