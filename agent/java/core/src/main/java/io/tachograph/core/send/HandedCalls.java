package io.tachograph.core.send;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.HandedCall;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.SegmentRecord;

/**
 * Writes the last part of each call that ended after its thread had left it.
 *
 * <p>Before: {@link HandedCall}, and {@link RingReader}, which wrote the earlier parts. After:
 * {@link Outbox}.
 */
final class HandedCalls {
    private final Outbox outbox;
    private final Totals totals;
    private final SegmentRecord record;

    /**
     * Ended calls that must wait: the reader has not yet reached the position in the ring at which
     * their thread left them, or the queue is full under the policy {@code block}.
     */
    private HandedCall waiting;

    /** State of the ring's reader for a call, at the moment when the thread left the call. */
    static final class Rest {
        final SegmentRecord.Head head = new SegmentRecord.Head();

        /** True after an error inside the segment; the call is dropped and counted. */
        boolean isLost;

        int operation;
        int call;
        long begin;

        /**
         * Offset from {@code System.nanoTime()} to the epoch, ns; the same as in the earlier parts.
         */
        long offset;
    }

    HandedCalls(Outbox outbox, Totals totals, Dictionary dictionary) {
        this.outbox = outbox;
        this.totals = totals;
        this.record = new SegmentRecord(dictionary);
    }

    /**
     * Writes the ended calls that need not wait ({@link #waiting}). If the queue is full under the
     * policy {@code drop}, they are dropped and counted.
     */
    void write(Buffers buffers) {
        HandedCall next = buffers.takeEnded();
        while (next != null) {
            HandedCall call = next;
            next = call.next;
            call.next = waiting;
            waiting = call;
        }
        HandedCall at = waiting;
        waiting = null;
        while (at != null) {
            HandedCall call = at;
            at = call.next;
            Rest rest = (Rest) call.rest;
            if (rest == null || outbox.mustWait()) {
                call.next = waiting;
                waiting = call;
                continue;
            }
            try {
                write(call, rest);
            } catch (RuntimeException | OutOfMemoryError e) {
                totals.callsDroppedInQueue++;
            }
        }
    }

    private void write(HandedCall call, Rest rest) {
        if (rest.isLost || outbox.isFull()) {
            totals.callsDroppedInQueue++;
            return;
        }
        int operation = call.operation() != 0 ? call.operation() : rest.operation;
        long end = Math.max(call.end(), rest.begin);
        record.clear();
        record.carry(operation, rest.call, end - rest.begin);
        if (call.isFailed()) {
            record.exitFailed(end);
        } else {
            record.exit(end);
        }
        attributes(call, rest.call);
        outbox.put(record, rest.head, rest.offset, totals);
    }

    private void attributes(HandedCall call, int number) {
        Object[] facts = call.facts();
        for (int at = 0; at < facts.length; at += 2) {
            String key = (String) facts[at];
            boolean isSaid =
                    facts[at + 1] instanceof Long
                            ? record.attribute(number, key, (long) facts[at + 1])
                            : record.attribute(number, key, (String) facts[at + 1]);
            totals.attributesDropped += isSaid ? 0 : 1;
        }
        if (call.thrown() != null) {
            record.attribute(number, "exception", ExceptionText.of(call.thrown()));
        }
    }
}
