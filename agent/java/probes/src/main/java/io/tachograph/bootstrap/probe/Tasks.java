package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Recorder;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/**
 * Work that is submitted to another thread. The origin of a task is the context of the call that
 * submits the task. Tasks are never wrapped, so queues, comparators and {@code remove(task)} see
 * the program's own object.
 *
 * <p>For most submissions ({@code submit}, {@code schedule}, {@code CompletableFuture}, fork-join)
 * the JDK creates an object, which has one origin. A {@code Runnable} of the program may be
 * submitted several times, recorded or not, to several pools, before it runs. For example, a lambda
 * without captured variables is one object for the whole program. Therefore the submissions of such
 * an object are kept in order for each queue ({@link HandOvers}). Unrecorded submissions are only
 * counted ({@link HandOverCounts}) until a recorded submission follows. If a pool starts a thread
 * with a task, the task bypasses the queue, and its origin is stored for the pool's worker.
 */
public final class Tasks {
    private static final int TASKS_MAX = 65_536;

    /** Origins of objects that are submitted once. */
    private static final WeakIdentityMap<Context> ORIGINS = new WeakIdentityMap<>(TASKS_MAX);

    /** Waiting submissions, by task and queue; usually empty if no submission is recorded. */
    private static final WeakIdentityMap<HandOvers> WAITING =
            new WeakIdentityMap<>(TASKS_MAX) {
                @Override
                void forgotten(HandOvers value) {
                    value.clear();
                }
            };

    private static final HandOverCounts UNRECORDED = new HandOverCounts();

    /**
     * Origin of the first task of a pool's thread, by worker: a context, or {@link #NO_ORIGIN}. The
     * map needs no bound, because each entry belongs to a thread that is about to start, and the
     * number of threads is bounded.
     */
    private static final WeakIdentityMap<Object> FIRST = new WeakIdentityMap<>(Integer.MAX_VALUE);

    private static final Object NO_ORIGIN = new Object();

    private static final Class<?> TIMED = timed();

    private Tasks() {}

    // ---- objects with one submission ----

    /** Called by the submitting thread. @param task an object that is submitted only once */
    public static void handOver(Object task) {
        handOver(task, Recorder.context());
    }

    private static void handOver(Object task, Context origin) {
        if (origin != null) {
            if (!ORIGINS.put(task, origin)) {
                Losses.parent();
            }
        } else {
            take(task); // removes the origin of a submission that never ran
        }
    }

    /** Returns and removes the origin of {@code task}; null if no recorded call submitted it. */
    public static Context take(Object task) {
        return ORIGINS.isEmpty() || ORIGINS.get(task) == null ? null : ORIGINS.remove(task);
    }

    /**
     * True if the task is submitted only once, as all tasks of a {@code
     * ScheduledThreadPoolExecutor} are: each {@code schedule} puts a new result of {@code
     * decorateTask} into the queue.
     */
    private static boolean isOneTime(Queue<?> queue, Object task) {
        return queue.getClass() == TIMED || isOneTime(task);
    }

    private static boolean isOneTime(Object task) {
        return task.getClass().getClassLoader() == null
                && (task instanceof Future
                        || task instanceof CompletableFuture.AsynchronousCompletionTask);
    }

    private static Class<?> timed() {
        try {
            String pool = "java.util.concurrent.ScheduledThreadPoolExecutor";
            return Class.forName(pool + "$DelayedWorkQueue", false, null);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    // ---- objects that wait in a queue ----

    /** Replaces {@code queue.offer(task)} in a pool's code. */
    public static boolean offer(BlockingQueue<Object> queue, Object task) {
        Context origin = comes(queue, task, false);
        boolean isIn = false;
        try {
            isIn = queue.offer(task);
        } finally {
            if (!isIn) {
                takeBack(queue, task, origin);
            }
        }
        return isIn;
    }

    /**
     * Notes a task that a pool rejects. A handler of the program may put the task into the queue,
     * run it, or discard it.
     *
     * @return the value for {@link #takeBack} if the handler throws
     */
    public static Context refused(Queue<?> queue, Object task) {
        return comes(queue, task, true);
    }

    /** Stores the origin before the task is in the queue, because the task may run at once. */
    private static Context comes(Queue<?> queue, Object task, boolean isLoose) {
        Context origin = null;
        try {
            origin = Recorder.context();
            if (isOneTime(queue, task)) {
                handOver(task, origin);
                return origin;
            }
            int place = System.identityHashCode(queue);
            if (origin == null && !isLoose && !isWaiting(task, place)) {
                if (UNRECORDED.increment(place, task)) {
                    return null;
                }
            }
            int before = UNRECORDED.takeAll(place, task);
            HandOvers.Change change = Outermost.here().handOvers;
            change.add(queue, origin, before, isLoose);
            if (!WAITING.change(task, place, change) && origin != null) {
                Losses.parent();
            }
            change.forget();
        } catch (Throwable e) {
            // Out of memory. The task is submitted without an origin.
        }
        return origin;
    }

    /** Called for a submission that did not enter the queue. */
    public static void takeBack(Queue<?> queue, Object task, Context origin) {
        try {
            if (isOneTime(queue, task)) {
                take(task);
                return;
            }
            int place = System.identityHashCode(queue);
            if (origin == null && UNRECORDED.decrement(place, task) || WAITING.isEmpty()) {
                return;
            }
            HandOvers.Change change = Outermost.here().handOvers.takeBack(origin);
            WAITING.changeKnown(task, place, change);
            change.forget();
        } catch (Throwable e) {
            // Out of memory, as above.
        }
    }

    /** Called for a task that left the queue without running. */
    public static void removed(Queue<?> queue, Object task) {
        try {
            leaves(queue, task);
        } catch (Throwable e) {
            // Out of memory, as above.
        }
    }

    public static void removedAll(Queue<?> queue, List<?> tasks) {
        for (Object task : tasks) {
            removed(queue, task);
        }
    }

    /** Replaces {@code queue.poll()} in a pool's code that discards a task. */
    public static Object discard(Queue<Object> queue) {
        Object task = queue.poll();
        if (task != null) {
            removed(queue, task);
        }
        return task;
    }

    private static Context leaves(Queue<?> queue, Object task) {
        if (isOneTime(queue, task)) {
            return take(task);
        }
        int place = System.identityHashCode(queue);
        if (!WAITING.isEmpty()) {
            HandOvers.Change change = Outermost.here().handOvers.begin(queue);
            WAITING.changeKnown(task, place, change);
            Context origin = change.origin();
            change.forget();
            if (change.isKnown()) {
                return origin;
            }
        }
        UNRECORDED.decrement(place, task);
        return null;
    }

    private static boolean isWaiting(Object task, int place) {
        return !WAITING.isEmpty() && WAITING.get(task, place) != null;
    }

    // ---- objects with which a pool starts a thread ----

    /** @param task null if the thread begins with a task from the queue */
    public static void first(Object worker, Object task) {
        if (task == null) {
            return;
        }
        Context origin = Recorder.context();
        if (isOneTime(task)) {
            handOver(task, origin);
        } else {
            FIRST.put(worker, origin == null ? NO_ORIGIN : origin);
        }
    }

    // ---- runs ----

    /**
     * Replaces {@code task.run()} in a pool's code.
     *
     * @param worker the object with which the pool represents the thread
     */
    public static void run(Runnable task, Queue<?> queue, Object worker) {
        Context before = null;
        boolean isAttached = false;
        try {
            Object first = FIRST.isEmpty() ? null : FIRST.remove(worker);
            Context origin = first == null ? leaves(queue, task) : null;
            if (first instanceof Context) {
                origin = (Context) first;
            }
            if (origin != null) {
                before = Recorder.attach(origin);
                isAttached = true;
            }
        } catch (Throwable e) {
            // For example, there is no memory for a buffer. The task runs anyway.
        }
        try {
            task.run();
        } finally {
            if (isAttached) {
                detach(before);
            }
        }
    }

    private static void detach(Context before) {
        try {
            Recorder.detach(before);
        } catch (Throwable e) {
            // A failure of the agent must not replace an exception of the task.
        }
    }
}
