package io.tachograph.bootstrap.probe;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Texts of statements whose operation is known, of all dialects: the same text may have another
 * shape in another one. Bounded by what the texts take together, since they are held in the heap of
 * the program.
 *
 * <p>Two generations: new texts go into the young one. When it has its half of the bound, it
 * becomes the old one, and the old one is dropped with all that was not asked for since. So texts
 * that come once, with values in them, never push out for long what comes again. What is dropped is
 * only read anew. To find a text takes one look-up, or two, and no lock.
 */
final class StatementTexts {
    static final int TEXT_CHARS_MAX = 4_096;

    /** What an entry takes beside its characters, counted as characters: node, key and number. */
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

    /** @param charsMax of all texts together; the last one of a generation may go past it */
    StatementTexts(long charsMax) {
        this.generationCharsMax = charsMax / 2;
        this.generations = new AtomicReference<>(new Generations(new Generation()));
    }

    /** @return null if it is not known */
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

    /** A text that is longer than {@link #TEXT_CHARS_MAX} is not remembered. */
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
            // Whoever is second finds that it was done.
            generations.compareAndSet(now, new Generations(now.young));
        }
    }

    /** What the texts that are remembered take, as characters. */
    long chars() {
        Generations now = generations.get();
        return now.young.chars.get() + now.old.chars.get();
    }
}
