package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class StatementTextsTest {
    private static final int CHARS_MAX = 1 << 16;

    private final StatementTexts texts = new StatementTexts(CHARS_MAX);

    /**
     * Only the last text of each generation may exceed the bound. A text that is used often is
     * kept.
     */
    @Test
    void allDialectsShareOneBound() {
        String hot = "select a from t where b = ?";
        texts.remember(hot, SqlDialect.OTHER, 7);
        String padding = "x".repeat(1_000);
        for (int i = 0; i < 1_000; i++) {
            for (SqlDialect dialect : SqlDialect.values()) {
                texts.remember(i + padding, dialect, i);
                assertTrue(texts.chars() <= CHARS_MAX + 2_200, texts.chars() + " characters");
            }
            assertEquals(7, texts.operation(hot, SqlDialect.OTHER), "round " + i);
        }
        assertNull(texts.operation(0 + padding, SqlDialect.OTHER));
        assertNotNull(texts.operation(999 + padding, SqlDialect.OTHER));
    }

    @Test
    void theSizeOfAnEntryIsIncluded() {
        for (int i = 0; i < 10_000; i++) {
            texts.remember("s" + i, SqlDialect.OTHER, i);
        }
        long known = 0;
        for (int i = 0; i < 10_000; i++) {
            known += texts.operation("s" + i, SqlDialect.OTHER) == null ? 0 : 1;
        }
        assertTrue(known <= CHARS_MAX / StatementTexts.ENTRY_CHARS, known + " texts");
    }

    @Test
    void longTextsAreNotStored() {
        String longest = "x".repeat(StatementTexts.TEXT_CHARS_MAX);
        texts.remember(longest, SqlDialect.OTHER, 1);
        texts.remember(longest + "x", SqlDialect.OTHER, 2);
        assertEquals(1, texts.operation(longest, SqlDialect.OTHER));
        assertNull(texts.operation(longest + "x", SqlDialect.OTHER));
    }

    @Test
    void aTextIsKnownInItsDialectOnly() {
        texts.remember("select 1", SqlDialect.MYSQL, 1);
        assertNull(texts.operation("select 1", SqlDialect.OTHER));
    }
}
