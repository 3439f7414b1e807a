package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;

class AnswerPauseTest {
    private static final long START = Long.MAX_VALUE - 5; // close to an overflow of the clock
    private static final long MILLI = 1_000_000;

    private final AnswerPause pause = new AnswerPause();

    private long leftAt(boolean hasNews, long millis) {
        return pause.left(hasNews, START + millis * MILLI) / MILLI;
    }

    /**
     * Columns: the times of successive answers, and for each answer the pause after it if there is
     * news. Both are in ms.
     */
    @ParameterizedTest
    @CsvSource({
        "0, 200",
        "0 200, 200 400",
        "0 200 600 1400 3000 6200 11199, 200 400 800 1600 3200 5000 5000",
        "0 200 600 5599, 200 400 800 1600",
        "0 200 600 5600, 200 400 800 200",
        "0 200 600 5600 5800, 200 400 800 200 400",
    })
    void thePauseGrowsWhileNewsIsFrequent(String answers, String expected) {
        List<String> waits = new ArrayList<>();
        for (String at : answers.split(" ")) {
            pause.answered(START + Long.parseLong(at) * MILLI);
            waits.add(Long.toString(leftAt(true, Long.parseLong(at))));
        }
        assertEquals(expected, String.join(" ", waits));
    }

    @Test
    void aNewProbesIsAnsweredAtOnceAndUpdatesFollowAfterFiveSeconds() {
        assertEquals(0, leftAt(false, 0));
        pause.answered(START);
        assertEquals(1, leftAt(false, 4_999));
        assertEquals(0, leftAt(false, 5_000));
        pause.answered(START + 100 * MILLI);
        pause.restart();
        assertEquals(0, leftAt(true, 101));
        pause.answered(START + 101 * MILLI);
        assertEquals(200, leftAt(true, 101), "after a restart the first pause must be the shortest one");
    }
}
