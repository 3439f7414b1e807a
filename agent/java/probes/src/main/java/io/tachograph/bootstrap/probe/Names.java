package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Recorder;

/**
 * Operations whose names are built at run time, such as {@code GET /ads/{id}}. A known name is
 * looked up without creating a string. The number of names is bounded: past the bound a new name
 * becomes its prefix and {@code (other)}.
 *
 * <p>The hash table uses linear probing and is at most half full. Entries are never removed. A
 * thread may not see yet an entry that another thread has just added. It then finds the entry under
 * the lock or, if the bound is reached, treats the name as past the bound.
 */
final class Names {
    private final int kind;
    private final int countMax;
    private final Entry[] table;

    /** Written under the lock. The count only grows, so a stale value is harmless. */
    private int count;

    private static final class Entry {
        final String name;
        final int hash;
        final int operation;

        Entry(String name, int hash, int operation) {
            this.name = name;
            this.hash = hash;
            this.operation = operation;
        }
    }

    /** @param countMax maximum number of names, a power of two */
    Names(int kind, int countMax) {
        this.kind = kind;
        this.countMax = countMax;
        this.table = new Entry[countMax * 2];
    }

    /** @param prefixLength number of characters of {@code name} to keep if the bound is reached */
    int operation(StringBuilder name, int prefixLength) {
        int hash = hash(name);
        Entry known = find(name, hash);
        if (known != null) {
            return known.operation;
        }
        int operation = newName(name, hash);
        return operation == 0 ? other(name, prefixLength) : operation;
    }

    /**
     * As {@link #operation}, for a call that may get another name later.
     *
     * @return 0 if the name is unknown and the bound is reached
     */
    int early(StringBuilder name) {
        int hash = hash(name);
        Entry known = find(name, hash);
        return known != null ? known.operation : newName(name, hash);
    }

    /** @return 0 if the name is unknown */
    int known(StringBuilder name) {
        Entry known = find(name, hash(name));
        return known == null ? 0 : known.operation;
    }

    private Entry find(CharSequence name, int hash) {
        int at = hash & table.length - 1;
        for (Entry entry = table[at]; entry != null; entry = table[at]) {
            if (entry.hash == hash && entry.name.contentEquals(name)) {
                return entry;
            }
            at = at + 1 & table.length - 1;
        }
        return null;
    }

    private int other(StringBuilder name, int prefixLength) {
        name.setLength(prefixLength);
        return Recorder.operation(kind, name.append("(other)").toString());
    }

    /** @return 0 if the bound is reached */
    private int newName(StringBuilder name, int hash) {
        // New names often arrive after the bound is reached; they must not take the lock.
        return count >= countMax ? 0 : add(name, hash);
    }

    /** @return 0 if other threads have reached the bound */
    private synchronized int add(StringBuilder name, int hash) {
        if (count >= countMax) {
            return 0;
        }
        Entry entry = new Entry(name.toString(), hash, Recorder.operation(kind, name.toString()));
        int at = hash & table.length - 1;
        while (table[at] != null) {
            if (table[at].name.contentEquals(name)) {
                return table[at].operation;
            }
            at = at + 1 & table.length - 1;
        }
        table[at] = entry;
        count++;
        return entry.operation;
    }

    private static int hash(CharSequence name) {
        int hash = 0;
        for (int i = 0; i < name.length(); i++) {
            hash = 31 * hash + name.charAt(i);
        }
        return hash ^ hash >>> 15;
    }
}
