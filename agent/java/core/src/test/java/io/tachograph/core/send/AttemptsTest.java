package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AttemptsTest {
    private static final long SECOND = 1_000_000_000;

    /** Clocks may wrap around. */
    private static final long BEGIN = Long.MAX_VALUE - SECOND;

    private final Attempts attempts = new Attempts(BEGIN);

    @Test
    void theFirstAttemptIsDueAtOnceAndAProgramThatEndsWaitsForIt() {
        assertTrue(attempts.isDue(BEGIN));
        assertTrue(attempts.mayOpen(BEGIN + 1, true));
        assertTrue(attempts.mayOpen(BEGIN + 1, false));
    }

    /**
     * Columns: the failure, which has a pause of 30 s; and the time after which a program that ends
     * connects again, ms. 0 means that the program does not connect again.
     */
    @ParameterizedTest
    @CsvSource({"SILENT, 100", "BUSY, 30000", "LASTING, 0"})
    void anEndingProgramConnectsAgainWhenThatMayHelp(Attempts.Failure failure, long millis) {
        attempts.begin(BEGIN);
        attempts.failed(failure, BEGIN, 30 * SECOND);
        assertFalse(attempts.isDue(BEGIN + 29 * SECOND));
        assertTrue(attempts.isDue(BEGIN + 30 * SECOND));
        long at = BEGIN + millis * 1_000_000;
        assertFalse(attempts.mayOpen(at, true));
        assertEquals(millis > 0, attempts.mayOpen(at + 1, true));
        if (millis > 0) {
            attempts.ending(true);
            assertFalse(attempts.isDue(at - 1));
            assertTrue(attempts.isDue(at));
        }
    }

    @Test
    void anAttemptThatReachesTheServerMaySucceed() {
        attempts.failed(Attempts.Failure.LASTING, BEGIN, SECOND);
        attempts.begin(BEGIN + SECOND);
        assertFalse(attempts.mayOpen(BEGIN + 2 * SECOND, false));
        attempts.reached();
        assertTrue(attempts.mayOpen(BEGIN + 2 * SECOND, false));
    }

    @Test
    void timeInWhichTheSenderDoesNotRunIsNotTheServersSilence() {
        attempts.begin(BEGIN);
        long now = BEGIN;
        for (int step = 0; step < 50; step++) {
            now += 10 * SECOND;
            assertFalse(attempts.isTooSlow(now));
        }
        assertTrue(attempts.isTooSlow(now + 1));
        attempts.begin(now);
        assertFalse(attempts.isTooSlow(now + 1));
    }
}
