package io.tachograph.core.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Operations;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.charset.StandardCharsets;

class DictionaryTest {
    @Test
    void textsPastTheBoundBecomeOther() {
        Dictionary dictionary = new Dictionary(Operations.shared());
        for (int at = 0; at < 40_000; at++) {
            dictionary.text("thread-" + at);
        }
        int other = dictionary.text("one more");
        assertEquals(other, dictionary.text("and another"));
        assertTrue(other <= Wire.DICT_IDS_MAX);
        assertNotEquals(other, dictionary.text("thread-1"));
    }

    @Test
    void manyLongNamesStayWithinTheLimitOnBytes() {
        Dictionary dictionary = new Dictionary(Operations.shared());
        String long8000 = "x".repeat(8_000);
        for (int at = 0; at < 3_000; at++) {
            dictionary.operation(Operations.shared().id(Operations.METHOD, at + long8000));
        }
        assertTrue(dictionary.size() < Wire.DICT_BYTES_MAX, "size " + dictionary.size());
    }

    @Test
    void framesCoverTheDictionaryWithoutGaps() {
        Dictionary dictionary = new Dictionary(Operations.shared());
        for (int at = 0; at < 20_000; at++) {
            dictionary.text("some longer name of a thread " + at);
        }
        int from = 0;
        int frames = 0;
        while (dictionary.frame(from, dictionary.size()) != null) {
            byte[] frame = dictionary.frame(from, dictionary.size());
            int end = dictionary.end(from, dictionary.size());
            assertEquals(end - from, frame.length - Wire.FRAME_HEADER_BYTES);
            assertTrue(frame.length < 80_000);
            from = end;
            frames++;
        }
        assertEquals(dictionary.size(), from);
        assertTrue(frames > 5);
        assertNull(dictionary.frame(from, from));
    }

    @Test
    void aRepeatedShortValueGetsAnId() {
        Dictionary dictionary = new Dictionary(Operations.shared());
        assertEquals(0, dictionary.value("GET"));
        int id = dictionary.value("GET");
        assertNotEquals(0, id);
        assertEquals(id, dictionary.value("GET"));
        assertEquals(0, dictionary.value("y".repeat(100)));
        assertEquals(0, dictionary.value("y".repeat(100)));
    }

    @ParameterizedTest
    @CsvSource({
        "abc,3,abc",
        "abcd,3,…",
        "abcdefgh,6,abc…",
        "ööööö,10,ööööö",
        "öööööö,10,ööö…",
        "漢漢漢漢,9,漢漢…",
        "😀😀😀,8,😀…",
        "a😀😀,8,a😀…",
        "'',5,''"
    })
    void textIsCutBetweenCharacters(String text, int bytesMax, String expected) {
        assertEquals(expected, new String(Bytes.utf8(text, bytesMax), StandardCharsets.UTF_8));
    }

    @Test
    void aLoneSurrogateIsReplaced() {
        assertEquals("a?b", new String(Bytes.utf8("a\ud800b", 100), StandardCharsets.UTF_8));
    }
}
