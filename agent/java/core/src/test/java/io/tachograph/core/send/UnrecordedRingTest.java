package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;

import org.junit.jupiter.api.Test;

import java.util.Map;

/** An unrecorded call without an exit stops the recording of its thread for a limited time. */
class UnrecordedRingTest {
    private static final int OPERATION = Operations.shared().id(Operations.METHOD, "unrecorded");
    private static final long START = Long.MAX_VALUE - 5; // close to an overflow of the clock

    private final Dictionary dictionary = new Dictionary(Operations.shared());
    private final ThreadBuffer buffer;
    private final RingReader reader;

    UnrecordedRingTest() {
        Buffers.Options options = new Buffers.Options();
        options.words = 64;
        buffer = new Buffers(new Session(1, 2), options).current();
        reader =
                new RingReader(
                        buffer,
                        new Outbox(dictionary, 1 << 20),
                        new WallClock(),
                        new Totals(),
                        new CallCounts(),
                        dictionary,
                        new DeclaredRecord(dictionary, Map.of()));
        while (isRecorded()) {}
    }

    private boolean isRecorded() {
        int token = buffer.enter(OPERATION);
        buffer.exit(token);
        return token > 0;
    }

    /**
     * Runs the reader's check for a lost exit this many ns after the start.
     *
     * @return true if calls are recorded afterwards
     */
    private boolean isRecordedAfter(long nanos) {
        reader.boundUnrecorded(START + nanos);
        return isRecorded();
    }

    @Test
    void aCallWithoutAnExitIsGivenUpAfterAMinute() {
        assertTrue(buffer.enter(OPERATION) < 0);
        buffer.free(buffer.published());
        assertEquals(false, isRecordedAfter(0));
        assertEquals(false, isRecordedAfter(RingReader.UNRECORDED_NANOS_MAX));
        assertEquals(true, isRecordedAfter(RingReader.UNRECORDED_NANOS_MAX + 1));
        assertEquals(true, isRecordedAfter(RingReader.UNRECORDED_NANOS_MAX + 2));
    }

    @Test
    void timesOfEndedCallsAreNotAddedUp() {
        for (int minute = 0; minute < 3; minute++) {
            int token = buffer.enter(OPERATION);
            assertTrue(token < 0);
            long begin = minute * RingReader.UNRECORDED_NANOS_MAX;
            assertEquals(false, isRecordedAfter(begin));
            assertEquals(false, isRecordedAfter(begin + RingReader.UNRECORDED_NANOS_MAX));
            buffer.exit(token);
        }
        buffer.free(buffer.published());
        assertTrue(isRecorded());
    }
}
