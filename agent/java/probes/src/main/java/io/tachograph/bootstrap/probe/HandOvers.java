package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Losses;

import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;

/**
 * The submissions of one task object to the queue of one pool that have not begun to run, oldest
 * first, including unrecorded ones. Submissions are modified only during a change of the map that
 * contains them, or after their removal from the map.
 *
 * <p>If an object was submitted several times, only a FIFO queue defines the submission to which a
 * run belongs. If the order is uncertain and the origins differ, a parent might be wrong. The runs
 * of the object then have no parent, until all its submissions have begun to run.
 */
final class HandOvers {
    /**
     * Maximum number of origins of all objects together, without the first origin of each object;
     * about 100 bytes each.
     */
    static final int MORE_MAX = 65_536;

    /**
     * If the queue is empty and the newest submission is older than this, the program has
     * presumably emptied the queue directly, without a method of the pool. The limit must be longer
     * than a thread of the pool takes on a busy machine between the removal of an object from the
     * queue and the start of its run. The age is measured with {@code System.nanoTime}: the time of
     * {@code CoarseClock} does not advance while the sender does not run.
     */
    private static final long LEFT_OVER_NANOS = 5_000_000_000L;

    private static final AtomicInteger MORE = new AtomicInteger();

    private Some first;
    private Some last;
    private int count;
    private long newestNanos;

    /**
     * True if a submission is possibly absent from the queue, because a rejection handler of the
     * program decided about it.
     */
    private boolean isLoose;

    /** True if a run possibly belonged to a submission that was not the oldest. */
    private boolean isMixed;

    /** Consecutive submissions with the same origin. */
    private static final class Some {
        final Context origin;
        int times;
        Some next;

        Some(Context origin, int times) {
            this.origin = origin;
            this.times = times;
        }
    }

    /** A change to the submissions of an object. Each thread reuses one Change. */
    static final class Change implements BiFunction<Object, HandOvers, HandOvers> {
        private static final int ADD = 0;
        private static final int BEGIN = 1;
        private static final int TAKE_BACK = 2;

        private int kind;
        private Context origin;
        private int unrecordedBefore;
        private Queue<?> queue;
        private boolean isLoose;
        private boolean isKnown;

        /**
         * @param unrecordedBefore number of earlier waiting submissions without an origin, from
         *     {@link HandOverCounts}
         * @param isLoose true if the submission possibly does not enter the queue
         */
        Change add(Queue<?> queue, Context origin, int unrecordedBefore, boolean isLoose) {
            this.kind = ADD;
            this.queue = queue;
            this.origin = origin;
            this.unrecordedBefore = unrecordedBefore;
            this.isLoose = isLoose;
            return this;
        }

        /** Removes the oldest submission, because the object has left the queue. */
        Change begin(Queue<?> queue) {
            this.kind = BEGIN;
            this.queue = queue;
            this.isKnown = false;
            this.origin = null;
            return this;
        }

        /** Removes the newest submission of this origin, which did not enter the queue. */
        Change takeBack(Context origin) {
            this.kind = TAKE_BACK;
            this.isKnown = false;
            this.origin = origin;
            return this;
        }

        /** After {@link #begin}: the origin of the run; null if there is none. */
        Context origin() {
            return origin;
        }

        /** Releases all references to objects of the program. */
        void forget() {
            origin = null;
            queue = null;
        }

        /** After {@link #begin} and {@link #takeBack}: true if there was a submission. */
        boolean isKnown() {
            return isKnown;
        }

        @Override
        public HandOvers apply(Object key, HandOvers known) {
            if (kind == ADD) {
                HandOvers all = known == null ? new HandOvers() : known;
                all.add(this);
                return all;
            }
            if (known == null) {
                return null;
            }
            isKnown = true;
            if (kind == BEGIN) {
                origin = known.begin(queue);
            } else {
                known.takeBack(origin);
            }
            return known.count == 0 ? null : known;
        }
    }

    private void add(Change change) {
        long now = System.nanoTime();
        if (count > 0 && now - newestNanos > LEFT_OVER_NANOS && isEmpty(change.queue)) {
            clear();
        } else {
            add(null, change.unrecordedBefore);
        }
        newestNanos = now;
        isLoose |= change.isLoose;
        add(change.origin, 1);
    }

    /** Only queues that run no code of the program are asked. */
    private static boolean isEmpty(Queue<?> queue) {
        return keepsOrder(queue) && queue.isEmpty();
    }

    private static boolean keepsOrder(Queue<?> queue) {
        Class<?> type = queue.getClass();
        return type == LinkedBlockingQueue.class
                || type == ArrayBlockingQueue.class
                || type == SynchronousQueue.class
                || type == LinkedTransferQueue.class
                || type == LinkedBlockingDeque.class;
    }

    void clear() {
        while (first != null) {
            unlink(null, first);
        }
        count = 0;
        isLoose = false;
        isMixed = false;
    }

    private void add(Context origin, int times) {
        if (times == 0) {
            return;
        }
        count += times;
        if (last != null && isSame(last.origin, origin)) {
            last.times += times;
            return;
        }
        if (origin != null && last != null && MORE.get() >= MORE_MAX) {
            Losses.parent();
            count -= times;
            add(null, times);
            return;
        }
        Some added = new Some(origin, times);
        if (last == null) {
            first = added;
        } else {
            last.next = added;
            MORE.incrementAndGet();
        }
        last = added;
    }

    private Context begin(Queue<?> queue) {
        boolean matters = first != last;
        if (matters && (isLoose || !keepsOrder(queue))) {
            isMixed = true;
        }
        Context origin = first.origin;
        leave(null, first);
        if (isMixed && origin != null) {
            Losses.parent();
        }
        return isMixed ? null : origin;
    }

    private void takeBack(Context origin) {
        Some before = null;
        Some found = null;
        Some previous = null;
        for (Some at = first; at != null; at = at.next) {
            if (isSame(at.origin, origin)) {
                before = previous;
                found = at;
            }
            previous = at;
        }
        if (found == null) {
            // The submission was removed by a run that began in the meantime.
            found = first;
        }
        leave(before, found);
    }

    private void leave(Some before, Some one) {
        count--;
        one.times--;
        if (one.times == 0) {
            unlink(before, one);
        }
    }

    private void unlink(Some before, Some one) {
        if (first != last) {
            MORE.decrementAndGet();
        }
        if (before == null) {
            first = one.next;
        } else {
            before.next = one.next;
        }
        if (last == one) {
            last = before;
        }
    }

    private static boolean isSame(Context one, Context other) {
        if (one == null || other == null) {
            return one == other;
        }
        return one.span() == other.span()
                && one.traceLow() == other.traceLow()
                && one.traceHigh() == other.traceHigh();
    }
}
