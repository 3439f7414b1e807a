package io.tachograph.bootstrap;

import java.util.concurrent.ConcurrentHashMap;

/**
 * The known operations, by id. Ids count from 1 and are never reused. The name of a method gets its
 * id when the class is instrumented. Names that are known only at run time (a route, a statement)
 * are looked up without allocation. The number of operations is bounded: past the bounds every new
 * name of a kind becomes the operation {@code (other)}.
 */
public final class Operations {
    /** Kinds, as on the wire ({@code docs/format/wire.md}, DICT). */
    public static final int METHOD = 1;

    public static final int HTTP_SERVER = 2;
    public static final int HTTP_CLIENT = 3;
    public static final int DATABASE = 4;
    public static final int CONNECTION_WAIT = 5;
    public static final int TASK = 6;

    /**
     * Bound for the names of all kinds together. Even a large, fully instrumented program has fewer
     * methods.
     */
    public static final int COUNT_MAX = 262_144;

    /**
     * Bound for the names of each kind except method. These names come from data, so their number
     * has no natural limit.
     */
    public static final int DYNAMIC_MAX = 8_192;

    /** Name of the operation that replaces names past a bound. */
    public static final String OTHER = "(other)";

    private static final int KINDS = 6;

    private static final Operations SHARED = new Operations(COUNT_MAX, DYNAMIC_MAX);

    private final int countMax;
    private final int dynamicMax;
    private final ConcurrentHashMap<String, Integer>[] ids;
    private final int[] other = new int[KINDS + 1];
    private volatile Entry[] entries = new Entry[1_024];

    /** Written under the lock. The count only grows, so a stale value is harmless. */
    private int count;

    public static final class Entry {
        public final int kind;
        public final String name;

        Entry(int kind, String name) {
            this.kind = kind;
            this.name = name;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    Operations(int countMax, int dynamicMax) {
        this.countMax = countMax;
        this.dynamicMax = dynamicMax;
        this.ids = new ConcurrentHashMap[KINDS + 1];
        for (int kind = 1; kind <= KINDS; kind++) {
            ids[kind] = new ConcurrentHashMap<>();
            other[kind] = add(kind, OTHER);
        }
    }

    public static Operations shared() {
        return SHARED;
    }

    /**
     * Returns the id of an operation: the existing id, or a new one if the bounds allow it, or else
     * the id of {@code (other)}.
     *
     * @param kind one of the constants; other values count as {@link #METHOD}
     * @param name never null; cut to 8,192 bytes when it is sent
     */
    public int id(int kind, String name) {
        int known = kind >= 1 && kind <= KINDS ? kind : METHOD;
        Integer id = ids[known].get(name);
        if (id != null) {
            return id;
        }
        return isFull(known) ? other[known] : create(known, name);
    }

    /**
     * {@link #id} calls this method without the lock, so that threads with new names do not wait
     * for the lock after a bound is reached.
     */
    private boolean isFull(int kind) {
        return count >= countMax || kind != METHOD && ids[kind].size() >= dynamicMax;
    }

    private synchronized int create(int kind, String name) {
        Integer id = ids[kind].get(name);
        if (id != null) {
            return id;
        }
        if (isFull(kind)) {
            return other[kind];
        }
        return add(kind, name);
    }

    private synchronized int add(int kind, String name) {
        int id = ++count;
        Entry[] table = entries;
        if (id >= table.length) {
            table = java.util.Arrays.copyOf(table, table.length * 2);
        }
        table[id] = new Entry(kind, name);
        entries = table; // also publishes the element to readers of the volatile field
        ids[kind].put(name, id);
        return id;
    }

    int other(int kind) {
        return other[kind];
    }

    /** Returns kind and name of an id; null for an id that was never assigned. */
    public Entry entry(int id) {
        Entry[] table = entries;
        return id > 0 && id < table.length ? table[id] : null;
    }
}
