package io.tachograph.bootstrap;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The record types that the program has declared, by id. Ids count from 1. The table holds only
 * text, so it does not prevent class loaders from being unloaded. The same declaration from another
 * class loader has the same id. The table is bounded: past the bounds a type has id 0, and its
 * records are dropped and counted.
 *
 * <p>Before: generated code, through {@code io.tachograph.api.RecordWriter}. After: {@link
 * RecordCursor} writes records; the sender reads the types with {@link #entry}.
 */
public final class RecordTypes {
    /**
     * Kinds of field. A value of the first four kinds takes one word of the ring. A value of the
     * other kinds is one object.
     */
    public static final char BOOL = 'Z';

    public static final char INTEGER = 'J';
    public static final char DOUBLE = 'D';
    public static final char FLOAT = 'F';
    public static final char TEXT = 'S';

    /** The name of an enum constant. */
    public static final char NAME = 'E';

    public static final char UUID = 'U';
    public static final char INSTANT = 'T';
    public static final char DURATION = 'N';

    private static final String WORDS = "ZJDF";
    private static final String KINDS = WORDS + "SEUTN";

    /** Maximum number of record types. A program usually has a few dozen. */
    public static final int COUNT_MAX = 4_096;

    /**
     * Maximum number of fields of one type, as on the wire ({@code docs/format/wire.md}).
     */
    public static final int RECORD_FIELDS_MAX = 64;

    /** Maximum number of characters in all declarations together. */
    private static final int CHARS_MAX = 1 << 20;

    private static final RecordTypes SHARED = new RecordTypes(COUNT_MAX, CHARS_MAX);

    private final int countMax;
    private final int charsMax;
    private final Map<String, Integer> ids = new HashMap<>();
    private volatile Entry[] entries = new Entry[16];
    private int count;
    private int chars;

    /** By name of the type: class name of the first exception that prevented a record. */
    private final Map<String, String> faults = new ConcurrentHashMap<>();

    private final AtomicLong failed = new AtomicLong();

    public static final class Entry {
        public final int id;
        public final String name;

        /** The kind of each field, one of the constants. */
        public final String kinds;

        /** Name and unit of each field, alternately. */
        final String[] fields;

        public final int words;
        public final int objects;

        Entry(int id, String name, String kinds, String[] fields) {
            this.id = id;
            this.name = name;
            this.kinds = kinds;
            this.fields = fields;
            int words = 0;
            for (int at = 0; at < kinds.length(); at++) {
                words += isWord(kinds.charAt(at)) ? 1 : 0;
            }
            this.words = words;
            this.objects = kinds.length() - words;
        }

        public String field(int at) {
            return fields[2 * at];
        }

        public String unit(int at) {
            return fields[2 * at + 1];
        }
    }

    public RecordTypes(int countMax, int charsMax) {
        this.countMax = countMax;
        this.charsMax = charsMax;
    }

    public static RecordTypes shared() {
        return SHARED;
    }

    public static boolean isWord(char kind) {
        return WORDS.indexOf(kind) >= 0;
    }

    /**
     * @param kinds one constant for each field
     * @param fields name and unit of each field, alternately
     * @return 0 if a bound is reached or the arguments are inconsistent
     */
    public synchronized int id(String name, String kinds, String... fields) {
        if (!isSound(name, kinds, fields)) {
            return 0;
        }
        String key = name + '\0' + kinds + '\0' + String.join("\0", fields);
        Integer known = ids.get(key);
        if (known != null) {
            return known;
        }
        if (count >= countMax || chars + key.length() > charsMax) {
            return 0;
        }
        chars += key.length();
        int id = ++count;
        Entry[] table = entries;
        if (id >= table.length) {
            table = java.util.Arrays.copyOf(table, table.length * 2);
        }
        table[id] = new Entry(id, name, kinds, fields.clone());
        entries = table; // also publishes the element to readers of the volatile field
        ids.put(key, id);
        return id;
    }

    private static boolean isSound(String name, String kinds, String[] fields) {
        if (name == null
                || kinds == null
                || fields == null
                || fields.length != 2 * kinds.length()) {
            return false;
        }
        for (int at = 0; at < kinds.length(); at++) {
            boolean named = fields[2 * at] != null && fields[2 * at + 1] != null;
            if (!named || KINDS.indexOf(kinds.charAt(at)) < 0) {
                return false;
            }
        }
        return !name.isEmpty() && kinds.length() <= RECORD_FIELDS_MAX;
    }

    /**
     * Counts a record of the type {@code name} that could not be created. For the first such record
     * of each type, the class name of the exception is kept, not the exception itself, because an
     * exception would keep the program's classes in memory.
     */
    public void failed(String name, Throwable thrown) {
        try {
            if (!faults.containsKey(name) && faults.size() < countMax) {
                faults.put(name, thrown.getClass().getName());
            }
        } finally {
            failed.incrementAndGet(); // last: a reader that sees the new count finds the fault
        }
    }

    public long failed() {
        return failed.get();
    }

    /** Class name of the first exception, by the name of each type with a failed record. */
    public Map<String, String> faults() {
        return faults;
    }

    /** Null for an id that was never assigned. */
    public Entry entry(int id) {
        Entry[] table = entries;
        return id > 0 && id < table.length ? table[id] : null;
    }
}
