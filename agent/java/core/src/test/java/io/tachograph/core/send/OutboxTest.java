package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Operations;
import io.tachograph.core.wire.Dictionary;

import org.junit.jupiter.api.Test;

class OutboxTest {
    private final Outbox outbox = new Outbox(new Dictionary(Operations.shared()), 400_000);

    /** Closes a frame with one record of {@code size} bytes in which ten calls end. */
    private void frame(int size) {
        outbox.begin(1).raw(new byte[size], 0, size);
        outbox.end(3, 10, 0);
        outbox.close();
    }

    private long sendNext() {
        long seq = outbox.next().seq;
        outbox.sent();
        return seq;
    }

    @Test
    void theNumbersOfFramesSurviveReconnects() {
        frame(10);
        frame(10);
        frame(10);
        assertEquals(1, sendNext());
        assertEquals(2, sendNext());
        outbox.acknowledge(1);
        outbox.rewind();
        assertEquals(2, sendNext());
        assertEquals(3, sendNext());
        assertNull(outbox.next());
        assertFalse(outbox.isAcknowledged(3));
        outbox.rewind();
        outbox.acknowledge(3); // the number in WELCOME
        assertNull(outbox.next());
        assertTrue(outbox.isAcknowledged(3));
        assertEquals(0, outbox.bytes());
    }

    @Test
    void theQueueIsFullAtItsBound() {
        for (int at = 0; at < 5; at++) {
            assertFalse(outbox.isFull());
            frame(80_000);
        }
        assertTrue(outbox.isFull());
        sendNext();
        outbox.acknowledge(1);
        assertFalse(outbox.isFull());
    }

    @Test
    void discardedRecordsAreCounted() {
        frame(10);
        frame(10);
        sendNext();
        Totals totals = new Totals();
        outbox.discard(totals);
        assertEquals(20, totals.callsDropped());
        assertEquals(0, outbox.bytes());
        frame(10);
        assertEquals(3, sendNext(), "the number of a discarded frame must not be used again");
    }
}
