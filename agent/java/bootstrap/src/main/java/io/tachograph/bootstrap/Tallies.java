package io.tachograph.bootstrap;

import java.util.Arrays;

/**
 * The counted calls of one thread: the open ones, and the {@link Tally} of each pair of operation
 * and caller. This object is part of a {@link ThreadBuffer}. The owner of the buffer is the only
 * writer; the sender reads the tallies. The table is never cleared: the next owner of the buffer
 * continues the counts.
 */
public final class Tallies {
    /**
     * Maximum number of pairs in the table of one thread; further pairs share one tally. The table
     * may have far more pairs than the {@link CallPairs#PAIRS_MAX} that are counted separately:
     * pairs that share the tally of {@code (other)} are in the table, too.
     */
    private static final int KEYS_MAX = 4_096;

    private static final Tally[] NONE = new Tally[0];
    private static final long[] NO_LONGS = new long[0];
    private static final int[] NO_INTS = new int[0];
    private static final long MIX = 0x9e3779b97f4a7c15L;

    // The table uses open addressing and is at most half full. Its values are positions in the list
    // of tallies. `enter` stores a position, because a reference would need a barrier of the garbage
    // collector, which costs more than the rest of `enter`.
    private long[] keys = NO_LONGS;
    private int[] found = NO_INTS;
    private int shift;
    private int size;
    private Tally[] list = NONE;
    private int count;
    private int rest = -1;

    // For each open counted call: its depth as given to enter (upper half), position of its tally
    // (lower half).
    private long[] open = NO_LONGS;
    // Start of each open counted call, as {@code System.nanoTime()}.
    private long[] begins = NO_LONGS;
    private int openCount;

    /** The list for the sender; all its elements are complete. */
    private volatile Tally[] all = NONE;

    private final CallPairs pairs;

    Tallies(CallPairs pairs) {
        this.pairs = pairs;
    }

    /**
     * @param depth number of open recorded calls; in an unrecorded trace, number of open calls that
     *     would otherwise be recorded
     * @param recorded operation of the innermost of those calls; 0 if there is none
     * @return the token of the call, from 1
     */
    int enter(int operation, int depth, int recorded) {
        int at = openCount;
        int caller = recorded;
        if (at > 0) {
            long above = open[at - 1];
            if ((int) (above >>> 32) == depth) {
                caller = list[(int) above].operation();
            } else if ((int) (above >>> 32) > depth) {
                return enterAfterMissed(operation, depth, recorded);
            }
        }
        int tally = position(operation, caller);
        if (at == open.length) {
            grow();
        }
        open[at] = (long) depth << 32 | tally;
        begins[at] = System.nanoTime();
        openCount = at + 1;
        return at + 1;
    }

    /**
     * Begins a call after the exits of earlier counted calls were missed: these calls were inside a
     * recorded call that has ended, so they count as ended, too.
     */
    private int enterAfterMissed(int operation, int depth, int recorded) {
        while (openCount > 0 && (int) (open[openCount - 1] >>> 32) > depth) {
            openCount--;
        }
        return enter(operation, depth, recorded);
    }

    /** Ends a call. @param token the result of {@link #enter} */
    void exit(int token, long now, boolean failed) {
        if (token > 0 && token <= openCount) {
            openCount = token - 1; // discards inner calls with a missed exit
            list[(int) open[token - 1]].add(now - begins[token - 1], failed);
        }
    }

    boolean isOpen() {
        return openCount > 0;
    }

    /** Discards the open calls, because their thread has ended. */
    void close() {
        openCount = 0;
    }

    /** Returns the token of the innermost open call of this operation; 0 if there is none. */
    int innermost(int operation) {
        for (int at = openCount; at > 0; at--) {
            if (list[(int) open[at - 1]].operation() == operation) {
                return at;
            }
        }
        return 0;
    }

    private void grow() {
        int length = Math.max(16, open.length * 2);
        begins = Arrays.copyOf(begins, length);
        open = Arrays.copyOf(open, length); // last: enter compares with the length of open
    }

    // ---- the table ----

    private int position(int operation, int caller) {
        long key = key(operation, caller);
        long[] table = keys;
        int mask = table.length - 1;
        for (int at = (int) (key * MIX >>> shift); mask > 0; at++) {
            long there = table[at & mask];
            if (there == key) {
                return found[at & mask];
            }
            if (there == 0) {
                break;
            }
        }
        return first(key);
    }

    /** Never 0, because ids of operations count from 1. */
    private static long key(int operation, int caller) {
        return (long) operation << 32 | caller;
    }

    /** Handles a pair that the table does not contain, because it is new or the table is full. */
    private int first(long key) {
        if (size >= KEYS_MAX) {
            return rest();
        }
        long admitted = pairs.admit(key);
        int position = admitted == CallPairs.REST ? rest() : shared(admitted, key);
        if (position < 0) {
            position = add(new Tally((int) (admitted >>> 32), (int) admitted));
        }
        put(key, position);
        return position;
    }

    /**
     * Returns the position of the tally that several pairs share; -1 if it does not exist yet, or
     * if the pair has its own tally.
     */
    private int shared(long admitted, long key) {
        for (int at = 0; at < count && admitted != key; at++) {
            if (key(list[at].operation(), list[at].caller()) == admitted) {
                return at;
            }
        }
        return -1;
    }

    private int rest() {
        if (rest < 0) {
            int other = Operations.shared().other(Operations.METHOD);
            rest = add(new Tally(other, other));
        }
        return rest;
    }

    private int add(Tally tally) {
        Tally[] more = Arrays.copyOf(list, count + 1);
        more[count] = tally;
        list = more;
        all = more;
        return count++;
    }

    private void put(long key, int position) {
        if (2 * (size + 1) > keys.length) {
            rehash();
        }
        insert(key, position);
        size++;
    }

    private void rehash() {
        long[] before = keys;
        int[] positions = found;
        int length = Math.max(32, 2 * before.length);
        long[] table = new long[length];
        int[] more = new int[length];
        keys = table;
        found = more;
        shift = 64 - Integer.numberOfTrailingZeros(length);
        for (int at = 0; at < before.length; at++) {
            if (before[at] != 0) {
                insert(before[at], positions[at]);
            }
        }
    }

    private void insert(long key, int position) {
        int mask = keys.length - 1;
        int at = (int) (key * MIX >>> shift);
        while (keys[at & mask] != 0) {
            at++;
        }
        found[at & mask] = position;
        keys[at & mask] = key;
    }

    // ---- the sender's side ----

    /** Must not be modified. */
    public Tally[] all() {
        return all;
    }
}
