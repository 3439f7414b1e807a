package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A ring of words, and a side ring of the objects to which some words refer. The writer is the
 * thread that holds the buffer; the reader is the sender. {@link ThreadBuffer}, {@link
 * AttributeWriter} and {@link RecordCursor} decide what is written and check for space. {@link
 * Word} defines the layout of a word.
 *
 * <b>Readers never see a partial event</b>: code that may overflow the stack (any method call) runs
 * before the release store that publishes a word. Only plain stores follow that store.
 */
public abstract class Ring {
    /**
     * Number of words reserved in addition to those for the exits of open calls: for the escapes
     * before an outermost enter, and for the enter itself ({@link Word}).
     */
    static final int MARGIN = 8;

    /**
     * Maximum number of objects in the side ring. A recorded request has about eight objects
     * (parent, keys, values), so 500 requests fit.
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

    // Written by the sender: `tail` after a block of words, `objectsTail` after each object.
    private long tail;
    private long objectsTail;

    /** @param words size, a power of two; 0 creates a ring without space */
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

    final void publishTo(long position) {
        HEAD.setRelease(this, position);
    }

    /** Words before this position have been read and may be overwritten. */
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

    /**
     * Stores an object, which becomes valid when its word is published. If publishing fails, the
     * next object overwrites it.
     */
    private void stage(int ahead, Object object) {
        objects[(int) (objectsHead + ahead) & objects.length - 1] = object;
    }

    // ---- the reader's side: one thread, the sender ----

    public final int capacity() {
        return ring.length;
    }

    /** The position up to which all words are complete. */
    public final long published() {
        return (long) HEAD.getAcquire(this);
    }

    public final long consumed() {
        return tail;
    }

    /** The word at a position between {@link #consumed} and {@link #published}. */
    public final long word(long position) {
        return ring[(int) position & mask];
    }

    /** Takes the next object of the side ring. Objects have the same order as their words. */
    public final Object takeObject() {
        long at = objectsTail;
        Object[] all = objects;
        int index = (int) at & all.length - 1;
        Object object = all[index];
        all[index] = null;
        OBJECTS_TAIL.setRelease(this, at + 1);
        return object;
    }

    /** Releases all words before {@code position} to the writer. */
    public final void free(long position) {
        TAIL.setRelease(this, position);
    }
}
