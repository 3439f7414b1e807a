package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * A call that may begin on one thread and end on another. After the first thread has left the call,
 * the call holds no buffer. There are two kinds. In the first kind, a thread leaves its outermost
 * call, such as a request that is answered later ({@link Recorder#leave}). In the second kind, a
 * thread only begins a call, such as a request whose answer is a promise ({@link Recorder#begin}).
 *
 * <p>When the sender reaches the position in the ring at which the thread left the call, it writes
 * the part up to there, and keeps the number of the call's segment ({@link #rest}). After any
 * thread has ended the call, the sender writes the last part of the segment, with the exit of the
 * call. A call that never ends costs only this object, which is garbage-collected with the promise
 * or request that refers to it.
 *
 * <p>Before: {@link Recorder}. After: {@code io.tachograph.core.send.HandedCalls}.
 */
public final class HandedCall {
    private static final int OPEN = 0;
    private static final int LEFT = 1;
    private static final int ENDED = 2;

    /** Capacity of {@link #facts}; keys and values both count. */
    private static final int FACTS_MAX = 16;

    /** Number of words that must be free in a ring before a call of the second kind is recorded. */
    private static final int WORDS = 16;

    private static final int OBJECTS = 8;
    private static final int TRIES = 8;

    private final Buffers home;
    private final AtomicInteger state = new AtomicInteger(OPEN);
    private volatile Context context;

    // Any thread may write the facts before the call ends. `end()` writes the other fields.
    private Object[] facts = new Object[4];
    private int factCount;
    private boolean isEnded;
    private int operation;
    private boolean failed;
    private Throwable thrown;
    private long end;

    // The sender uses the fields below.

    /**
     * State of the ring's reader for this call. Null until the reader reaches the position at which
     * the thread left the call.
     */
    public Object rest;

    /** Next call in the list of ended calls. */
    public HandedCall next;

    public HandedCall(Buffers home) {
        this.home = home;
    }

    /**
     * Begins a call with one attribute, as a child of {@code parent}. The call borrows a buffer
     * during this method only.
     */
    static HandedCall begin(
            Buffers home, int operation, Context parent, String key, String value) {
        HandedCall call = new HandedCall(home);
        ThreadBuffer buffer = withRoom(home, TRIES);
        try {
            buffer.attach(parent);
            if (!hasRoom(buffer)) {
                Losses.call();
                call.known(parent);
                return call;
            }
            int token = buffer.enter(operation);
            buffer.attribute(token, key, value);
            call.known(buffer.context());
            if (!buffer.leave(token, call)) {
                buffer.exit(token); // not recorded
            }
        } finally {
            home.takeBack(buffer);
        }
        return call;
    }

    /**
     * Tries several buffers. All threads try the buffers in the same order, so the first buffers
     * may be full.
     */
    private static ThreadBuffer withRoom(Buffers home, int tries) {
        ThreadBuffer buffer = home.lend(Thread.currentThread());
        if (tries == 0 || hasRoom(buffer)) {
            return buffer;
        }
        try {
            return withRoom(home, tries - 1);
        } finally {
            home.takeBack(buffer);
        }
    }

    private static boolean hasRoom(ThreadBuffer buffer) {
        // A buffer without a pool (slot < 0) needs no room: it drops and counts the call.
        return buffer.slot < 0 || buffer.wordsFit(WORDS) && buffer.objectsFit(OBJECTS);
    }

    // ---- on the thread that began the call ----

    /**
     * Sets the context of the call.
     *
     * @param context may be null if the call is not recorded and has no parent
     */
    void known(Context context) {
        this.context = context;
    }

    /** @return false if the call has already ended; the thread itself must then record the exit */
    boolean leave() {
        return state.compareAndSet(OPEN, LEFT);
    }

    // ---- on any thread ----

    /**
     * The parent of calls that this call causes: this call or, if this call is not recorded, its
     * parent, which may be null. Before the thread that began this call has left it: null.
     */
    public Context context() {
        return context;
    }

    public synchronized void attribute(String key, Object value) {
        if (value == null) {
            return;
        }
        if (factCount == FACTS_MAX) {
            Losses.attribute();
            return;
        }
        if (factCount == facts.length) {
            facts = java.util.Arrays.copyOf(facts, FACTS_MAX);
        }
        facts[factCount++] = key;
        facts[factCount++] = value;
    }

    /**
     * Ends the call. Only the first end has an effect.
     *
     * @param operation the final operation; 0 to keep the operation that the call had when its
     *     thread left it
     * @param thrown may be null if only the failure is known
     */
    public void end(int operation, boolean failed, Throwable thrown) {
        synchronized (this) {
            if (isEnded) {
                return;
            }
            isEnded = true;
            this.operation = operation;
            this.failed = failed;
            this.thrown = thrown;
            this.end = System.nanoTime();
        }
        if (state.getAndSet(ENDED) == LEFT) {
            home.ended(this);
        }
    }

    // ---- for the sender, and for a thread that must end the call itself ----

    public synchronized int operation() {
        return operation;
    }

    public synchronized boolean isFailed() {
        return failed;
    }

    public synchronized Throwable thrown() {
        return thrown;
    }

    /** {@code System.nanoTime()} at the end of the call. */
    public synchronized long end() {
        return end;
    }

    /** Keys and values alternately. A value is a text or a {@code Long}. */
    public synchronized Object[] facts() {
        return java.util.Arrays.copyOf(facts, factCount);
    }
}
