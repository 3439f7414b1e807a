package io.tachograph.api;

import io.tachograph.bootstrap.RecordCursor;
import io.tachograph.bootstrap.RecordTypes;

/**
 * What generated code calls where {@link Records#on} says that there is an agent; nothing else
 * should. A record is {@link #begin}, the values in the order of the fields, {@link #end}.
 */
public final class RecordWriter {
    private RecordWriter() {}

    /**
     * The id of a type.
     *
     * @param kinds a constant of {@link RecordTypes} for each field
     * @param fields name and unit of each field, in turn
     */
    public static int type(String name, String kinds, String... fields) {
        return RecordTypes.shared().id(name, kinds, fields);
    }

    /**
     * @return where the values go; null if the record is left out
     */
    public static Object begin(int type, int words, int objects) {
        RecordCursor cursor = RecordCursor.current();
        return cursor.begin(type, words, objects) ? cursor : null;
    }

    public static void number(Object to, long value) {
        ((RecordCursor) to).put(value);
    }

    public static void truth(Object to, boolean value) {
        ((RecordCursor) to).put(value ? 1L : 0L);
    }

    public static void real(Object to, double value) {
        ((RecordCursor) to).put(Double.doubleToRawLongBits(value));
    }

    public static void shortReal(Object to, float value) {
        ((RecordCursor) to).put((long) Float.floatToRawIntBits(value));
    }

    /** A value that may be null; of a class of the JDK's, and immutable. */
    public static void object(Object to, Object value) {
        ((RecordCursor) to).put(value);
    }

    /**
     * A record is not there.
     *
     * @param type its name
     * @param thrown what a value's own code threw, or what there was not enough of
     */
    public static void failed(String type, Throwable thrown) {
        RecordCursor.current().fail(); // first: a borrowed buffer goes back, whatever comes
        RecordTypes.shared().failed(type, thrown);
    }

    public static void end(Object to) {
        ((RecordCursor) to).end();
    }
}
