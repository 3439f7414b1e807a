package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Losses with another cause than a full ring, counted where they happen: rare, so one shared
 * counter each is enough.
 *
 * <p>After: {@code io.tachograph.core.sample.AgentSampler}, {@code core.send.Sender}.
 */
public final class Losses {
    private static final AtomicLong PARENTS = new AtomicLong();
    private static final AtomicLong CALLS = new AtomicLong();
    private static final AtomicLong ATTRIBUTES = new AtomicLong();

    private Losses() {}

    /**
     * A task runs without the parent that was submitted with it: the parent was not stored, or is
     * ambiguous.
     */
    public static void parent() {
        PARENTS.incrementAndGet();
    }

    public static long parents() {
        return PARENTS.get();
    }

    /** A call that its thread only begins found no room in any of the rings tried. */
    static void call() {
        CALLS.incrementAndGet();
    }

    public static long calls() {
        return CALLS.get();
    }

    /** No room for an attribute of a call that ends on another thread. */
    static void attribute() {
        ATTRIBUTES.incrementAndGet();
    }

    public static long attributes() {
        return ATTRIBUTES.get();
    }
}
