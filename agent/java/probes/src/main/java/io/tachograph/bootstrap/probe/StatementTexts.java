package io.tachograph.bootstrap.probe;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Texts of statements with known operations, by dialect, because the same text may have different
 * shapes in two dialects. The total size of the texts is bounded, because they are in the heap of
 * the program.
 *
 * <p>There are two generations. New texts go into the young generation. When it reaches half of the
 * bound, it becomes the old generation, and the earlier old generation is dropped. An old text that
 * is used again is copied to the young generation, so repeated texts stay. A text with values in it
 * usually occurs only once, so it is dropped with its generation. A dropped text is parsed again at
 * its next use. Finding a text takes one or two look-ups and no lock.
 */
final class StatementTexts {
    static final int TEXT_CHARS_MAX = 4_096;

    /** Size of an entry in addition to its text, in characters: node, key and number. */
    static final int ENTRY_CHARS = 64;

    private final long generationCharsMax;
    private final AtomicReference<Generations> generations;

    private static final class Generation {
        final AtomicLong chars = new AtomicLong();
        private final Object[] byDialect = new Object[SqlDialect.values().length];

        Generation() {
            for (int at = 0; at < byDialect.length; at++) {
                byDialect[at] = new ConcurrentHashMap<String, Integer>();
            }
        }

        @SuppressWarnings("unchecked")
        ConcurrentHashMap<String, Integer> of(SqlDialect dialect) {
            return (ConcurrentHashMap<String, Integer>) byDialect[dialect.ordinal()];
        }
    }

    private static final class Generations {
        final Generation young = new Generation();
        final Generation old;

        Generations(Generation old) {
            this.old = old;
        }
    }

    /** @param charsMax maximum total size; the last text of each generation may exceed it */
    StatementTexts(long charsMax) {
        this.generationCharsMax = charsMax / 2;
        this.generations = new AtomicReference<>(new Generations(new Generation()));
    }

    /** @return null if the text is unknown */
    Integer operation(String text, SqlDialect dialect) {
        Generations now = generations.get();
        Integer known = now.young.of(dialect).get(text);
        if (known == null) {
            known = now.old.of(dialect).get(text);
            if (known != null) {
                remember(text, dialect, known);
            }
        }
        return known;
    }

    /** A text longer than {@link #TEXT_CHARS_MAX} is not stored. */
    void remember(String text, SqlDialect dialect, Integer operation) {
        if (text.length() > TEXT_CHARS_MAX) {
            return;
        }
        Generations now = generations.get();
        if (now.young.of(dialect).putIfAbsent(text, operation) != null) {
            return;
        }
        long chars = now.young.chars.addAndGet(text.length() + ENTRY_CHARS);
        if (chars >= generationCharsMax) {
            // Has no effect if another thread has already done it.
            generations.compareAndSet(now, new Generations(now.young));
        }
    }

    /** Size of the stored texts with {@link #ENTRY_CHARS} for each, in characters. */
    long chars() {
        Generations now = generations.get();
        return now.young.chars.get() + now.old.chars.get();
    }
}
