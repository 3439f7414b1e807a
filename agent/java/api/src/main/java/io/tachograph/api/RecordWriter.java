package io.tachograph.api;

import io.tachograph.bootstrap.RecordCursor;
import io.tachograph.bootstrap.RecordTypes;

/**
 * The interface between generated code and an agent. Only generated code uses this class, and only
 * if {@link Records#on} is true. To write a record, the code calls {@link #begin}, writes the
 * values in the order of the fields, and calls {@link #end}.
 */
public final class RecordWriter {
    private RecordWriter() {}

    /**
     * @param kinds one constant of {@link RecordTypes} for each field
     * @param fields name and unit of each field, alternately
     */
    public static int type(String name, String kinds, String... fields) {
        return RecordTypes.shared().id(name, kinds, fields);
    }

    /** @return the object to which the values are written; null if the record is dropped */
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

    /** @param value null, or an immutable object of a class of the JDK */
    public static void object(Object to, Object value) {
        ((RecordCursor) to).put(value);
    }

    /**
     * Counts a record that could not be created.
     *
     * @param type name of the type
     * @param thrown an exception that the program threw while a value was read, or an out-of-memory
     *     or stack overflow error
     */
    public static void failed(String type, Throwable thrown) {
        RecordCursor.current().fail(); // first, so that a borrowed buffer is returned
        RecordTypes.shared().failed(type, thrown);
    }

    public static void end(Object to) {
        ((RecordCursor) to).end();
    }
}
