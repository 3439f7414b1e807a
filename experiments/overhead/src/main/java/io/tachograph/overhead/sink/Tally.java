package io.tachograph.overhead.sink;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** What has arrived so far, over all connections. */
final class Tally {
    final AtomicLong connections = new AtomicLong();
    final AtomicLong bytes = new AtomicLong();

    /** Calls of which something arrived: complete ones count once, an end without a begin half. */
    final AtomicLong halves = new AtomicLong();

    /** Calls that the sender says it left out. */
    final AtomicLong leftOut = new AtomicLong();

    /** Methods that the sender says are switched off, or only counted; by a rule that was sent. */
    final AtomicLong switched = new AtomicLong();

    final AtomicReference<String> fault = new AtomicReference<>("");

    void calls(long calls) {
        halves.addAndGet(2 * calls);
    }

    /** Only the first counts. */
    void fault(String text) {
        fault.compareAndSet("", text);
    }

    String json(long cpuNanos) {
        return String.format(
                "{\"connections\":%d,\"bytes\":%d,\"calls\":%d,\"left_out\":%d,\"switched\":%d,\"cpu_ns\":%d,\"fault\":\"%s\"}",
                connections.get(),
                bytes.get(),
                halves.get() / 2,
                leftOut.get(),
                switched.get(),
                cpuNanos,
                fault.get().replaceAll("[\"\\\\\\p{Cntrl}]", "?"));
    }
}
