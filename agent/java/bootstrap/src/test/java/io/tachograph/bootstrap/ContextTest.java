package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ContextTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final String SPAN = "00f067aa0ba902b7";

    @Test
    void traceparentIsPassedOn() {
        String header = "00-" + TRACE + "-" + SPAN + "-01";
        Context context = Context.parse(header);
        assertEquals(Context.REMOTE, context.segment());
        assertEquals(0x4bf92f3577b34da6L, context.traceHigh());
        assertEquals(0xa3ce929d0e0e4736L, context.traceLow());
        assertEquals(0x00f067aa0ba902b7L, context.span());
        assertEquals(header, context.traceparent());
        assertEquals(
                header,
                Context.parse("cc-" + TRACE + "-" + SPAN + "-00-what the future brings")
                        .traceparent());
    }

    /** The flag itself is never copied into an outgoing header. */
    @ParameterizedTest
    @CsvSource({"00, false", "01, true", "02, false", "03, true", "fe, false", "ff, true"})
    void theSampledFlagShowsWhetherTheTraceIsRecorded(String flags, boolean isSampled) {
        Context context = Context.parse("00-" + TRACE + "-" + SPAN + "-" + flags);
        assertTrue(context.isFromHeader());
        assertEquals(isSampled, context.isSampled());
        assertEquals("00-" + TRACE + "-" + SPAN + "-01", context.traceparent());
    }

    @Test
    void outgoingHeadersLackTheSampledFlagOnlyIfTheTraceIsNotRecordedHere() {
        Context unsampled = Context.unsampled(1, 2, 3);
        assertFalse(unsampled.isSampled());
        assertFalse(unsampled.isFromHeader());
        assertEquals(
                "00-00000000000000010000000000000002-0000000000000003-00", unsampled.traceparent());
        Context kept = Context.local(1, 2, 3, 4);
        assertTrue(kept.isSampled());
        assertTrue(kept.traceparent().endsWith("-01"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "00",
                "ff-" + TRACE + "-" + SPAN + "-01",
                "00-" + TRACE + "-" + SPAN + "-01-more",
                "cc-" + TRACE + "-" + SPAN + "-01x",
                "00-00000000000000000000000000000000-" + SPAN + "-01",
                "00-" + TRACE + "-0000000000000000-01",
                "00-" + TRACE + "-" + SPAN + "-0x",
                "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + SPAN + "-01",
                "00_" + TRACE + "-" + SPAN + "-01",
                "0g-" + TRACE + "-" + SPAN + "-01"
            })
    void invalidHeadersHaveNoContext(String header) {
        assertNull(Context.parse(header));
        assertNull(Context.parse(null));
    }
}
