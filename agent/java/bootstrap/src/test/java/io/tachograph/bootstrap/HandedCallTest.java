package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class HandedCallTest {
    private static final int OPERATION = Operations.shared().id(Operations.HTTP_CLIENT, "begun");

    private static Buffers buffers(int virtualWords) {
        Buffers.Options options = new Buffers.Options();
        options.words = 64;
        options.virtualWords = virtualWords;
        options.virtualMax = 64;
        return new Buffers(new Session(1, 2), options);
    }

    private static HandedCall begin(Buffers buffers) {
        return HandedCall.begin(buffers, OPERATION, null, "http.path", "/");
    }

    @Test
    void openCallsHoldNoBuffer() {
        Buffers buffers = buffers(65_536);
        long before = Losses.calls();
        long last = 0;
        for (int at = 0; at < 5_000; at++) {
            HandedCall call = begin(buffers);
            assertNotEquals(last, call.context().span());
            last = call.context().span();
        }
        assertEquals(before, Losses.calls());
        assertEquals(0, buffers.callsDroppedWithoutBuffer());
        assertTrue(buffers.bytes() <= 8 * 65_536 * 8, "more than eight buffers are in use");
        assertTrue(buffers.lend(Thread.currentThread()).slot >= 0);
    }

    /** If a call does not fit, its context is its parent, and its end has no effect. */
    @Test
    void callsThatDoNotFitAreCounted() {
        Buffers buffers = buffers(64);
        long before = Losses.calls();
        int begun = 0;
        while (Losses.calls() == before) {
            begin(buffers);
            begun++;
        }
        assertTrue(begun > 8, "only " + begun + " calls fitted into at most nine rings of 64 words");
        HandedCall call = begin(buffers);
        assertEquals(before + 2, Losses.calls());
        assertNull(call.context());
        call.end(0, false, null);
        assertNull(buffers.takeEnded());
        Context parent = Context.local(1, 2, 3, 4);
        assertEquals(parent, HandedCall.begin(buffers, OPERATION, parent, "a", "b").context());
    }

    @Test
    void theFirstEndCounts() {
        Buffers buffers = buffers(256);
        HandedCall call = begin(buffers);
        call.end(0, true, null);
        call.end(7, false, null);
        HandedCall ended = buffers.takeEnded();
        assertNotNull(ended);
        assertNull(ended.next);
        assertTrue(ended.isFailed());
        assertEquals(0, ended.operation());
    }

    /** The second end waits for the first. */
    @Test
    void theFirstOfTwoConcurrentEndsCounts() throws Exception {
        Buffers buffers = buffers(256);
        HandedCall call = begin(buffers);
        Thread second = new Thread(() -> call.end(7, false, null));
        synchronized (call) {
            second.start();
            while (second.getState() != Thread.State.BLOCKED) {
                Thread.sleep(1);
            }
            call.end(0, true, null);
        }
        second.join();
        HandedCall ended = buffers.takeEnded();
        assertTrue(ended.isFailed());
        assertEquals(0, ended.operation());
    }

    @Test
    void attributesPastTheBoundAreCounted() {
        long before = Losses.attributes();
        HandedCall call = begin(buffers(256));
        for (long at = 0; at < 10; at++) {
            call.attribute("fact", at);
        }
        assertEquals(16, call.facts().length);
        assertEquals(before + 2, Losses.attributes());
        call.attribute("none", null);
        assertEquals(before + 2, Losses.attributes());
    }
}
