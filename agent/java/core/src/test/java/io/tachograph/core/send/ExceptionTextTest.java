package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.sql.SQLException;

class ExceptionTextTest {
    @Test
    void messagesOfDatabasesAndOfWhatWrapsThemAreNotTold() {
        SQLException failed = new SQLException("invalid input: \"s3cret\"", "22P02", 7);
        Throwable wrapped = failed;
        for (int depth = 0; depth < 40; depth++) {
            String text = ExceptionText.of(wrapped);
            assertFalse(text.contains("s3cret"), text);
            assertTrue(text.startsWith(wrapped.getClass().getName()), text);
            wrapped = new IllegalStateException(wrapped);
        }
    }

    @Test
    void othersAreToldAndAllIfAskedFor() {
        assertEquals(
                "java.lang.IllegalStateException: why",
                ExceptionText.of(new IllegalStateException("why", new RuntimeException())));
        RuntimeException wrapped = new RuntimeException("s3cret", new SQLException());
        ExceptionText.tellDatabaseMessages(true);
        try {
            assertEquals("java.lang.RuntimeException: s3cret", ExceptionText.of(wrapped));
        } finally {
            ExceptionText.tellDatabaseMessages(false);
        }
    }
}
