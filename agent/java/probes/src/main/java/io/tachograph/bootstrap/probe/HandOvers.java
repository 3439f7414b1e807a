package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.CoarseClock;
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
 * The hand-overs of one object to one queue that have not begun to run, oldest first; those that
 * nobody recorded count, too. Changed only inside a change of the map that holds it.
 *
 * <p>An object that waits once runs for that hand-over, whatever the queue. One that waits several
 * times says nothing about which hand-over a run is for; a queue that keeps its order does. Where
 * the order is in doubt, and it matters, a run has no parent rather than a wrong one, until all
 * runs have begun.
 */
final class HandOvers {
    /** Origins kept beside the first of each object, over all objects: some 100 bytes each. */
    static final int MORE_MAX = 65_536;

    /** What was handed over so long ago and is not in the queue any more was taken out unseen. */
    private static final long LEFT_OVER_NANOS = 1_000_000_000L;

    private static final AtomicInteger MORE = new AtomicInteger();

    private Some first;
    private Some last;
    private int count;
    private long newestNanos;

    /** One of them may not be in the queue: a handler of the program's decided about it. */
    private boolean isLoose;

    /** Something ran that is not known to be the oldest. */
    private boolean isMixed;

    /** Hand-overs in a row with the same origin. */
    private static final class Some {
        final Context origin;
        int times;
        Some next;

        Some(Context origin, int times) {
            this.origin = origin;
            this.times = times;
        }
    }

    /** What is to be done to the hand-overs of an object. One for each thread, used again. */
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
         * @param unrecordedBefore hand-overs that wait and are counted elsewhere
         * @param isLoose it may not come into the queue
         */
        Change add(Queue<?> queue, Context origin, int unrecordedBefore, boolean isLoose) {
            this.kind = ADD;
            this.queue = queue;
            this.origin = origin;
            this.unrecordedBefore = unrecordedBefore;
            this.isLoose = isLoose;
            return this;
        }

        /** One leaves the queue, to run or not. */
        Change begin(Queue<?> queue) {
            this.kind = BEGIN;
            this.queue = queue;
            this.isKnown = false;
            this.origin = null;
            return this;
        }

        /** The newest one of this origin did not come into the queue. */
        Change takeBack(Context origin) {
            this.kind = TAKE_BACK;
            this.isKnown = false;
            this.origin = origin;
            return this;
        }

        /** After {@link #begin}: whom the run belongs to; null for nobody. */
        Context origin() {
            return origin;
        }

        /** Keeps nothing of the program's. */
        void forget() {
            origin = null;
            queue = null;
        }

        /** After {@link #begin} and {@link #takeBack}: there was one. */
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
        long now = CoarseClock.nanos();
        if (count > 0 && now - newestNanos > LEFT_OVER_NANOS && isEmpty(change.queue)) {
            clear();
        } else {
            add(null, change.unrecordedBefore);
        }
        newestNanos = now;
        isLoose |= change.isLoose;
        add(change.origin, 1);
    }

    /** Asks only queues that run no code of the program's. */
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

    /** The object is gone, and so are its hand-overs. */
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
            // A run that began meanwhile took it for its own.
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
