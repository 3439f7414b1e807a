package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;

import java.util.function.BiFunction;

/**
 * Work that is handed to another thread: who handed it over is remembered beside the task, never in
 * a wrapper around it, so that a queue, a comparator or {@code remove(task)} sees the program's own
 * object. A task that was handed over while nothing was recorded costs one look at an empty map.
 */
public final class Tasks {
    private static final int TASKS_MAX = 65_536;

    /**
     * Times that one object is handed over before it runs: one that a pool throws away again and
     * again must not gather them. Past this the next ones have no origin.
     */
    static final int TIMES_MAX = 64;

    private static final WeakIdentityMap<Origin> ORIGINS = new WeakIdentityMap<>(TASKS_MAX);

    private Tasks() {}

    /**
     * Who handed a task over. One object can be handed over several times before it runs: the
     * oldest comes first.
     */
    private static final class Origin {
        final Context context;
        Origin next;

        Origin(Context context) {
            this.context = context;
        }
    }

    private static final class TakeFirst implements BiFunction<Object, Origin, Origin> {
        Origin taken;

        @Override
        public Origin apply(Object key, Origin first) {
            taken = first;
            return first == null ? null : first.next;
        }
    }

    private static final class Append implements BiFunction<Object, Origin, Origin> {
        private final Origin last;

        Append(Origin last) {
            this.last = last;
        }

        @Override
        public Origin apply(Object key, Origin first) {
            if (first == null) {
                return last;
            }
            Origin at = first;
            int times = 1;
            while (at.next != null) {
                at = at.next;
                times++;
            }
            if (times < TIMES_MAX) {
                at.next = last;
            }
            return first;
        }
    }

    /** The calling thread hands {@code task} over. */
    public static void handOver(Object task) {
        Context context = task == null ? null : Recorder.context();
        if (context != null) {
            ORIGINS.change(task, new Append(new Origin(context)));
        }
    }

    /**
     * Who handed {@code task} over; null when nobody who is recorded did. Answers once for each
     * time.
     */
    public static Context take(Object task) {
        if (ORIGINS.isEmpty() || ORIGINS.get(task) == null) {
            return null;
        }
        TakeFirst first = new TakeFirst();
        ORIGINS.change(task, first);
        return first.taken == null ? null : first.taken.context;
    }

    /** Stands where a pool's own code said {@code task.run()}. */
    public static void run(Runnable task) {
        Context before = null;
        boolean isAttached = false;
        try {
            Context origin = take(task);
            if (origin != null) {
                before = Recorder.attach(origin);
                isAttached = true;
            }
        } catch (Throwable e) {
            // No memory for a buffer, say. The task runs all the same.
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
            // What the task itself threw must come through.
        }
    }
}
