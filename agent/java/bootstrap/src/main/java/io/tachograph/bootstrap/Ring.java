package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Words, and objects that some of them speak of, on their way from one writer, the thread that
 * holds the buffer, to one reader, the sender. What is written, and whether there is room for it,
 * is the business of {@link ThreadBuffer}; the layout of a word is in {@link Word}.
 *
 * <p><b>No half event is seen</b>: what may run out of stack (any method call) comes before the
 * release store that publishes a word, and what comes after it are plain stores.
 */
public abstract class Ring {
    /** Words kept free beside the exits: what may go before an outermost enter, and the enter. */
    static final int MARGIN = 8;

    /**
     * A watched request says some eight objects (parent, keys, values): room for 500 requests while
     * the reader sleeps. Half of that ends its sleep.
     */
    private static final int OBJECTS = 4_096;

    private static final Object[] NO_OBJECTS = new Object[0];

    private static final VarHandle HEAD;
    private static final VarHandle TAIL;
    private static final VarHandle OBJECTS_TAIL;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            HEAD = lookup.findVarHandle(Ring.class, "head", long.class);
            TAIL = lookup.findVarHandle(Ring.class, "tail", long.class);
            OBJECTS_TAIL = lookup.findVarHandle(Ring.class, "objectsTail", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final long[] ring;
    final int mask;
    final Buffers home;

    // Written by the thread that holds the buffer.
    long head;

    Object[] objects = NO_OBJECTS;
    long objectsHead;

    // Written by the sender, once for thousands of words.
    private long tail;
    private long objectsTail;

    /**
     * @param words size, a power of two; 0 makes a ring that has no room
     */
    Ring(Buffers home, int words) {
        this.home = home;
        this.ring = new long[Math.max(words, 1)];
        this.mask = ring.length - 1;
    }

    // ---- the writer's side ----

    final void publish(long word) {
        long at = head;
        ring[(int) at & mask] = word;
        HEAD.setRelease(this, at + 1);
    }

    final void publishPair(long first, long second) {
        long at = head;
        ring[(int) at & mask] = first;
        ring[(int) (at + 1) & mask] = second;
        HEAD.setRelease(this, at + 2);
    }

    /** Publishes all words before {@code position}. */
    final void publishTo(long position) {
        HEAD.setRelease(this, position);
    }

    /** All words before this position have been read. */
    final long freed() {
        return (long) TAIL.getAcquire(this);
    }

    final boolean objectsFit(int count) {
        if (objects == NO_OBJECTS) {
            objects = new Object[Math.min(OBJECTS, Math.max(16, ring.length / 8))];
        }
        long freed = (long) OBJECTS_TAIL.getAcquire(this);
        if (objectsHead - freed > objects.length / 2) {
            home.wake();
        }
        return objectsHead + count <= freed + objects.length;
    }

    /** With the object that the word speaks of. */
    final void publish(long word, Object object) {
        stage(0, object);
        publish(word);
        objectsHead += 1;
    }

    final void publish(long word, Object first, Object second) {
        stage(0, first);
        stage(1, second);
        publish(word);
        objectsHead += 2;
    }

    final void publishPair(long first, long second, Object object) {
        stage(0, object);
        publishPair(first, second);
        objectsHead += 1;
    }

    /** It counts when its word is there: without stack for that, the next one takes its place. */
    private void stage(int ahead, Object object) {
        objects[(int) (objectsHead + ahead) & objects.length - 1] = object;
    }

    // ---- the reader's side: one thread, the sender ----

    /** Words that the ring has room for. */
    public final int capacity() {
        return ring.length;
    }

    /** All words before this position are complete. */
    public final long published() {
        return (long) HEAD.getAcquire(this);
    }

    /** Where the reader goes on. */
    public final long consumed() {
        return tail;
    }

    /** A word at a position between {@link #consumed} and {@link #published}. */
    public final long word(long position) {
        return ring[(int) position & mask];
    }

    /** The next object that a word spoke of; objects come in the order of their words. */
    public final Object takeObject() {
        long at = objectsTail;
        Object[] all = objects;
        int index = (int) at & all.length - 1;
        Object object = all[index];
        all[index] = null;
        OBJECTS_TAIL.setRelease(this, at + 1);
        return object;
    }

    /** Frees all words before {@code position} for the writer. */
    public final void free(long position) {
        TAIL.setRelease(this, position);
    }
}
