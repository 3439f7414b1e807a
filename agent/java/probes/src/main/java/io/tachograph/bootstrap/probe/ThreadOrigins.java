package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Inheritance;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Recorder;

import java.util.concurrent.ForkJoinWorkerThread;

/**
 * Threads that were started inside a recorded call. That call is the parent of their outermost
 * calls. Threads of the JDK's pools are excluded.
 */
public final class ThreadOrigins extends Inheritance {
    private static final int THREADS_MAX = 65_536;

    private static final WeakIdentityMap<Context> ORIGINS = new WeakIdentityMap<>(THREADS_MAX);

    private ThreadOrigins() {}

    public static void install() {
        use(new ThreadOrigins());
    }

    /** Called by the thread that starts {@code thread}. */
    public static void starts(Thread thread) {
        if (thread instanceof ForkJoinWorkerThread || Outermost.isInside(Outermost.POOL_THREAD)) {
            return;
        }
        Context context = Recorder.context();
        if (context != null && !ORIGINS.put(thread, context)) {
            Losses.parent();
        }
    }

    /**
     * The origin is kept until the thread is garbage-collected, because a virtual thread looks it
     * up before each outermost call.
     */
    @Override
    protected Context originOf(Thread thread) {
        return ORIGINS.isEmpty() ? null : ORIGINS.get(thread);
    }
}
