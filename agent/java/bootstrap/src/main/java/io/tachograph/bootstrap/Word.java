package io.tachograph.bootstrap;

/**
 * Layout of one event in a {@code long} of a thread's ring.
 *
 * <pre>
 *  63                                    22 21                  2 1  0
 *  +---------------------------------------+---------------------+----+
 *  | low 42 bits of System.nanoTime()      | operation or escape |kind|
 *  +---------------------------------------+---------------------+----+
 * </pre>
 *
 * The time is absolute, so the writer needs no state of the previous event. The field wraps after
 * 2^42 ns (73 minutes). The reader adds the upper bits from its own clock; the result is correct if
 * the word has waited for less than 73 minutes.
 */
public final class Word {
    /** The innermost open call returned. */
    public static final int EXIT = 0;

    /** A call was entered; the operation's id is in the middle field. */
    public static final int ENTER = 1;

    /** The innermost open call ended as failed. */
    public static final int EXIT_FAILED = 2;

    /**
     * Not an event: the middle field is the type of the escape, one of the constants below. The
     * time field is unused, except in {@link #RECORD}.
     */
    public static final int ESCAPE = 3;

    /**
     * Escape: the next word is the number of the ring's next segment. Later segments count up from
     * that number.
     */
    public static final int SEGMENT_NUMBER = 1;

    /** Escape: the next segment has a parent, a {@link Context} in the side ring. */
    public static final int PARENT = 2;

    /** Escape: a text attribute of the innermost open call. Two objects: key and value. */
    public static final int ATTRIBUTE_TEXT = 3;

    /**
     * Escape: a numeric attribute of the innermost open call. The next word is the value; one
     * object: the key.
     */
    public static final int ATTRIBUTE_INTEGER = 4;

    /** Escape: the exception with which the innermost open call is about to end. One object. */
    public static final int EXCEPTION = 5;

    /** Escape: the name of the thread that writes to this ring from here on. One object. */
    public static final int THREAD = 6;

    /**
     * Escape: the operation of an open call changed. The next word is the token of the call (upper
     * half) and the id of the new operation (lower half).
     */
    public static final int OPERATION = 7;

    /**
     * Escape: the outermost call, the only open one, continues without this thread. One object, a
     * {@link HandedCall}.
     */
    public static final int HANDED = 8;

    /**
     * Escape: a declared record. The middle field is this value plus the id of the record type. The
     * time field is used. One word for each numeric or boolean value follows; other values are
     * objects.
     */
    public static final int RECORD = 16;

    /** Highest operation id that fits into the middle field. */
    public static final int OPERATION_MAX = (1 << 20) - 1;

    /** Number of bits of the clock in a word. */
    public static final int TIME_BITS = 42;

    private static final int TIME_SHIFT = 22;
    private static final int MIDDLE_SHIFT = 2;

    private Word() {}

    static long enter(long nanoTime, int operation) {
        return nanoTime << TIME_SHIFT | (long) operation << MIDDLE_SHIFT | ENTER;
    }

    static long exit(long nanoTime, int kind) {
        return nanoTime << TIME_SHIFT | kind;
    }

    static long escape(int what) {
        return (long) what << MIDDLE_SHIFT | ESCAPE;
    }

    static long record(long nanoTime, int type) {
        return nanoTime << TIME_SHIFT | (long) (RECORD + type) << MIDDLE_SHIFT | ESCAPE;
    }

    /** One of {@link #EXIT}, {@link #ENTER}, {@link #EXIT_FAILED}, {@link #ESCAPE}. */
    public static int kind(long word) {
        return (int) word & 3;
    }

    /** The operation of an {@link #ENTER}, or the type of an {@link #ESCAPE}. */
    public static int middle(long word) {
        return (int) (word >>> MIDDLE_SHIFT) & OPERATION_MAX;
    }

    /**
     * @param word the event
     * @param now a {@code System.nanoTime()} that was read after the word became visible
     */
    public static long time(long word, long now) {
        long age = (now << TIME_SHIFT) - (word & -1L << TIME_SHIFT) >>> TIME_SHIFT;
        return now - age;
    }
}
