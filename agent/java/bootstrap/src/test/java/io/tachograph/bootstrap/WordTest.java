package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.Random;

class WordTest {
    @Test
    void fieldsSurviveARoundTrip() {
        Random random = new Random(1);
        for (int at = 0; at < 100_000; at++) {
            long now = random.nextLong();
            long age = random.nextLong() & (1L << Word.TIME_BITS) - 1;
            int operation = random.nextInt(Word.OPERATION_MAX + 1);
            long word = Word.enter(now - age, operation);
            assertEquals(Word.ENTER, Word.kind(word));
            assertEquals(operation, Word.middle(word));
            assertEquals(now - age, Word.time(word, now));
            assertEquals(now - age, Word.time(Word.exit(now - age, Word.EXIT_FAILED), now));
        }
        assertEquals(Word.THREAD, Word.middle(Word.escape(Word.THREAD)));
        assertEquals(Word.ESCAPE, Word.kind(Word.escape(Word.THREAD)));
    }
}
