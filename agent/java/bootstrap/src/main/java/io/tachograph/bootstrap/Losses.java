package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicLong;

/**
 * What could not be recorded for another reason than a full ring, counted where it happens: seldom,
 * so one number each is enough.
 *
 * <p>After: {@code io.tachograph.core.sample.AgentSampler}, {@code core.send.Sender}.
 */
public final class Losses {
    private static final AtomicLong PARENTS = new AtomicLong();
    private static final AtomicLong CALLS = new AtomicLong();
    private static final AtomicLong ATTRIBUTES = new AtomicLong();

    private Losses() {}

    /** A task runs without the parent that its hand-over had: no room to keep it, or in doubt. */
    public static void parent() {
        PARENTS.incrementAndGet();
    }

    public static long parents() {
        return PARENTS.get();
    }

    /** A call that its thread only begins found no room in several rings. */
    static void call() {
        CALLS.incrementAndGet();
    }

    public static long calls() {
        return CALLS.get();
    }

    /** A fact of a call that ends elsewhere found no room. */
    static void attribute() {
        ATTRIBUTES.incrementAndGet();
    }

    public static long attributes() {
        return ATTRIBUTES.get();
    }
}
