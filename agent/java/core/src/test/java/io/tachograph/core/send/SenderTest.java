package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.wire.SampleBatch;
import io.tachograph.core.wire.Series;

import org.junit.jupiter.api.Test;

import java.util.Map;

class SenderTest {
    private static final int CALLS = 200_000;

    @Test
    void discardedRecordsAreNeitherKeptNorCountedAsDropped() {
        Session session = new Session(1, 2);
        Buffers.Options rings = new Buffers.Options();
        rings.words = 1_024;
        rings.blockNanos = 60_000_000_000L;
        Buffers buffers = new Buffers(session, rings);
        Sender sender = discarding(buffers, session);
        sender.start();

        ThreadBuffer buffer = buffers.current();
        int operation = Operations.shared().id(Operations.METHOD, "m");
        for (int at = 0; at < CALLS; at++) {
            buffer.exit(buffer.enter(operation));
        }
        sender.flush(60_000_000_000L);

        Totals totals = sender.totals();
        assertEquals(CALLS, totals.callsSent);
        assertEquals(0, totals.callsDropped());
        assertEquals(0, totals.bytesQueued);
        assertEquals(0, totals.bytesSent);
    }

    @Test
    void samplesThatDoNotFitIntoTheQueueAreCountedAsDropped() {
        Session session = new Session(1, 2);
        Sender sender = discarding(new Buffers(session, new Buffers.Options()), session);
        Series series = new Series("m", Map.of());
        for (int at = 0; at < 100; at++) {
            sender.offer(new SampleBatch(at).add(series, at));
        }
        sender.start();
        sender.flush(60_000_000_000L);
        assertEquals(100, sender.totals().samplesSent() + sender.totals().samplesDropped());
    }

    private static Sender discarding(Buffers buffers, Session session) {
        Sender.Options options = new Sender.Options();
        options.server = Sender.DISCARD;
        options.process = Map.of("service", "test");
        options.queueBytes = 1 << 20;
        options.blocks = true;
        return new Sender(buffers, session, options, AgentLog.to(System.err, false));
    }
}
