package io.tachograph.bootstrap;

/**
 * What is said about the calls of one thread: texts, numbers, exceptions. An attribute without room
 * is left out, and counted; its call is not.
 */
final class AttributeWriter {
    private final ThreadBuffer buffer;

    /**
     * Identity of the exception that was said last, 0 for none. Not the exception itself: an
     * outermost call may run for as long as the program, and would keep its class loader.
     */
    private int lastThrown;

    private volatile long dropped;

    AttributeWriter(ThreadBuffer buffer) {
        this.buffer = buffer;
    }

    /** Of the innermost open call. */
    void text(String key, String value) {
        if (buffer.wordsFit(1) && buffer.objectsFit(2)) {
            buffer.publish(Word.escape(Word.ATTRIBUTE_TEXT), key, value);
        } else {
            dropped = dropped + 1; // one writer only
        }
    }

    /** Of the innermost open call. */
    void number(String key, long value) {
        if (buffer.wordsFit(2) && buffer.objectsFit(1)) {
            buffer.publishPair(Word.escape(Word.ATTRIBUTE_INTEGER), value, key);
        } else {
            dropped = dropped + 1;
        }
    }

    /**
     * Says an exception where it first appears and where it leaves the outermost call, not at each
     * level between.
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

    /** Something else that could not be said. */
    void drop() {
        dropped = dropped + 1;
    }

    /** The outermost call is over. */
    void end() {
        lastThrown = 0;
    }

    /** Attributes left out for want of room, since the buffer exists. */
    long dropped() {
        return dropped;
    }
}
