package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

class TokenTest {
    private static final String FORM =
            "a token has 1 to 256 visible ASCII characters, no blanks and no line breaks";

    @TempDir Path folder;

    private static Token value(String text) {
        return new Token(text, "", false);
    }

    private static Token file(Path path) {
        return new Token("", path.toString(), false);
    }

    private Path written(String content) throws IOException {
        return Files.writeString(
                folder.resolve("token"), content, StandardCharsets.ISO_8859_1);
    }

    private static String read(Token token) throws IOException {
        return new String(token.read(), StandardCharsets.US_ASCII);
    }

    private static void fails(Token token, String expected) {
        assertEquals(expected, assertThrows(IOException.class, token::read).getMessage());
    }

    @Test
    void aTokenIsAValueOrTheOnlyLineOfAFile() throws Exception {
        for (String text : new String[] {"t", "tacho_!~5eC", "x".repeat(256)}) {
            assertEquals(text, read(value(text)));
            for (String end : new String[] {"", "\n", "\r\n"}) {
                assertEquals(text, read(file(written(text + end))));
            }
        }
        assertEquals("", read(value("")));
    }

    @ParameterizedTest
    @ValueSource(strings = {" ", "\n", " 5eC", "5eC ", "5e C", "5eC\n", "5\nC", "5eC\0", "5eC\u00e4"})
    void otherValuesAreRefusedAndNotShown(String text) throws Exception {
        fails(value(text), "token: " + FORM);
        Path path = written(text + "\n");
        fails(file(path), "token_file=" + path + ": " + FORM);
    }

    @Test
    void longValuesAndEmptyFilesAreRefused() throws Exception {
        fails(value("5".repeat(257)), "token: " + FORM);
        for (String content : new String[] {"", "\n", "5".repeat(257), "5".repeat(1_000_000)}) {
            Path path = written(content);
            fails(file(path), "token_file=" + path + ": " + FORM);
        }
    }

    @Test
    void filesThatCannotBeUsedAreNamed() throws Exception {
        Path fifo = folder.resolve("fifo");
        assertEquals(0, new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor());
        for (Path path : new Path[] {fifo, folder, Path.of("/dev/zero")}) {
            fails(file(path), "token_file=" + path + ": it is not a regular file");
        }
        Path missing = folder.resolve("missing");
        fails(file(missing), "token_file=" + missing + ": no such file");
        fails(
                new Token("5eC", missing.toString(), false),
                "token and token_file are both set, set only one of them");
    }

    @Test
    void aChangedFileIsReadAgain() throws Exception {
        Token token = file(written("first"));
        assertEquals("first", read(token));
        written("second");
        assertEquals("second", read(token));
    }

    @Test
    void toStringDoesNotContainTheToken() {
        assertFalse(value("5eC").toString().contains("5eC"));
    }
}
