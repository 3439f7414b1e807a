package io.tachograph.bootstrap;

/**
 * Writes the attributes of one thread's calls: texts, numbers, exceptions. If the ring has no space
 * for an attribute, the attribute is dropped and counted; its call is kept.
 */
final class AttributeWriter {
    private final ThreadBuffer buffer;

    /**
     * Identity hash of the last recorded exception; 0 if there is none. A reference would keep the
     * exception's class loader in memory while the outermost call is open, perhaps as long as the
     * program runs.
     */
    private int lastThrown;

    private volatile long dropped;

    AttributeWriter(ThreadBuffer buffer) {
        this.buffer = buffer;
    }

    void text(String key, String value) {
        if (buffer.wordsFit(1) && buffer.objectsFit(2)) {
            buffer.publish(Word.escape(Word.ATTRIBUTE_TEXT), key, value);
        } else {
            dropped = dropped + 1; // single writer
        }
    }

    void number(String key, long value) {
        if (buffer.wordsFit(2) && buffer.objectsFit(1)) {
            buffer.publishPair(Word.escape(Word.ATTRIBUTE_INTEGER), value, key);
        } else {
            dropped = dropped + 1;
        }
    }

    /**
     * Records an exception where it first appears and where it leaves the outermost call. The
     * levels in between do not record it again.
     */
    void exception(Throwable thrown, int call) {
        if (thrown == null) {
            return;
        }
        int identity = System.identityHashCode(thrown) | 1 << 31; // never 0
        if (identity == lastThrown && call > 1) {
            return;
        }
        if (buffer.wordsFit(1) && buffer.objectsFit(1)) {
            buffer.publish(Word.escape(Word.EXCEPTION), thrown);
            lastThrown = identity;
        } else {
            dropped = dropped + 1;
        }
    }

    /** Counts a change of an operation for which there was no space, as if it were an attribute. */
    void drop() {
        dropped = dropped + 1;
    }

    /** Called at the end of the outermost call. */
    void end() {
        lastThrown = 0;
    }

    /** Number of attributes and changes of an operation dropped since the buffer was created. */
    long dropped() {
        return dropped;
    }
}
