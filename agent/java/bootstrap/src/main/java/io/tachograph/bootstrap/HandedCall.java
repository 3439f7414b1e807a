package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * A call that ends elsewhere than it began, and holds no buffer meanwhile, however long it takes:
 * an outermost one that its thread leaves, such as a request that is answered later ({@link
 * Recorder#leave}), or one that its thread only begins, such as a request whose answer comes as a
 * promise ({@link Recorder#begin}). What is known by then is its segment, and whoever ends it, on
 * any thread, has the last part written. One that is never ended costs nothing but this object,
 * which goes with the promise or request that holds it.
 *
 * <p>Before: {@link Recorder}. After: {@code io.tachograph.core.send.HandedCalls}.
 */
public final class HandedCall {
    private static final int OPEN = 0;
    private static final int LEFT = 1;
    private static final int ENDED = 2;

    /** Keys and values. */
    private static final int FACTS_MAX = 16;

    /** What a call that is only begun may take in a ring, with a thread's name and a parent. */
    private static final int WORDS = 16;

    private static final int OBJECTS = 8;
    private static final int TRIES = 8;

    private final Buffers home;
    private final AtomicInteger state = new AtomicInteger(OPEN);
    private volatile Context context;

    // Written before the end by who ends it.
    private Object[] facts = new Object[4];
    private int factCount;
    private boolean isEnded;
    private int operation;
    private boolean failed;
    private Throwable thrown;
    private long end;

    // Of the sender.

    /** What its ring's reader knows of it; null until it has come to the place where it was left. */
    public Object rest;

    /** The next one in the list of those that have ended. */
    public HandedCall next;

    public HandedCall(Buffers home) {
        this.home = home;
    }

    /**
     * A call begins in a buffer that is lent for this moment: child of {@code parent}, with a fact.
     * It is recorded, or left out and counted, as any other.
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
                buffer.exit(token); // left out
            }
        } finally {
            home.takeBack(buffer);
        }
        return call;
    }

    /** The sender may be late with the first one, which all threads take in turn. */
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
        // One without a slot leaves out what it gets, and counts it.
        return buffer.slot < 0 || buffer.wordsFit(WORDS) && buffer.objectsFit(OBJECTS);
    }

    // ---- on the thread that began it ----

    /** @param context the call as a parent; null if it is left out and has no parent itself */
    void known(Context context) {
        this.context = context;
    }

    /** @return false if it has ended, so that the thread itself must end it */
    boolean leave() {
        return state.compareAndSet(OPEN, LEFT);
    }

    // ---- on any thread ----

    /** The call as a parent for others, once its thread has left it. */
    public Context context() {
        return context;
    }

    /** A fact about the call, before its end. */
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
     * It is over. Only the first end counts.
     *
     * @param operation what it turned out to be; 0 for what it began as
     * @param thrown may be null when only the failure is known
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

    // ---- for the sender, and for the thread that must end it itself ----

    public synchronized int operation() {
        return operation;
    }

    public synchronized boolean isFailed() {
        return failed;
    }

    public synchronized Throwable thrown() {
        return thrown;
    }

    /** {@code System.nanoTime()} of its end. */
    public synchronized long end() {
        return end;
    }

    /** Keys and values in turn: texts, or {@code Long}. */
    public synchronized Object[] facts() {
        return java.util.Arrays.copyOf(facts, factCount);
    }
}
