package io.tachograph.overhead.sink;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** Counts over all connections. */
final class Tally {
    final AtomicLong connections = new AtomicLong();
    final AtomicLong bytes = new AtomicLong();

    /** Received enters and exits. */
    final AtomicLong halves = new AtomicLong();

    /** Calls that the sender reported as dropped. */
    final AtomicLong dropped = new AtomicLong();

    /** Methods that the sender last reported as switched off or aggregated. */
    final AtomicLong switched = new AtomicLong();

    final AtomicReference<String> fault = new AtomicReference<>("");

    void calls(long calls) {
        halves.addAndGet(2 * calls);
    }

    /** Stores only the first fault. */
    void fault(String text) {
        fault.compareAndSet("", text);
    }

    String json(long cpuNanos) {
        return String.format(
                "{\"connections\":%d,\"bytes\":%d,\"calls\":%d,\"dropped\":%d,\"switched\":%d,\"cpu_ns\":%d,\"fault\":\"%s\"}",
                connections.get(),
                bytes.get(),
                halves.get() / 2,
                dropped.get(),
                switched.get(),
                cpuNanos,
                fault.get().replaceAll("[\"\\\\\\p{Cntrl}]", "?"));
    }
}
