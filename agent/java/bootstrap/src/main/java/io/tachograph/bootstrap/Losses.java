package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts losses that belong to no thread's buffer. The losses are rare, so one shared counter for
 * each kind is enough.
 *
 * <p>After: {@code io.tachograph.core.sample.AgentSampler}, {@code core.send.Sender}.
 */
public final class Losses {
    private static final AtomicLong PARENTS = new AtomicLong();
    private static final AtomicLong CALLS = new AtomicLong();
    private static final AtomicLong ATTRIBUTES = new AtomicLong();

    private Losses() {}

    /**
     * Counts work on another thread (a task, a started thread, a late answer to a request) whose
     * calls may lack their parent. The agent had no space to remember the parent, or several calls
     * may have submitted the task.
     */
    public static void parent() {
        PARENTS.incrementAndGet();
    }

    public static long parents() {
        return PARENTS.get();
    }

    /** Counts a call that {@link HandedCall#begin} dropped, because all tried rings were full. */
    static void call() {
        CALLS.incrementAndGet();
    }

    public static long calls() {
        return CALLS.get();
    }

    /** Counts an attribute that did not fit into its {@link HandedCall}. */
    static void attribute() {
        ATTRIBUTES.incrementAndGet();
    }

    public static long attributes() {
        return ATTRIBUTES.get();
    }
}
