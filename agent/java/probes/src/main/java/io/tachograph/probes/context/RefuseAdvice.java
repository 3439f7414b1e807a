package io.tachograph.probes.context;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.RejectedExecutionHandler;

/**
 * Inlined into {@code ThreadPoolExecutor.reject}. A handler of the program may put the task into
 * the queue, so the origin is stored before the handler runs, and removed if the handler throws.
 * The JDK's handlers do not need this: they throw, discard a task, run the task on the calling
 * thread, or submit it by {@code execute}, which stores the origin.
 */
final class RefuseAdvice {
    private RefuseAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static Context enter(
            @Advice.Argument(0) Object task,
            @Advice.FieldValue("workQueue") BlockingQueue<Runnable> queue,
            @Advice.FieldValue("handler") RejectedExecutionHandler handler,
            @Advice.Local("isKept") boolean isKept) {
        isKept = handler.getClass().getClassLoader() != null;
        return isKept ? Tasks.refused(queue, task) : null;
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(
            @Advice.Argument(0) Object task,
            @Advice.FieldValue("workQueue") BlockingQueue<Runnable> queue,
            @Advice.Enter Context origin,
            @Advice.Local("isKept") boolean isKept,
            @Advice.Thrown Throwable thrown) {
        if (isKept && thrown != null) {
            Tasks.takeBack(queue, task, origin);
        }
    }
}
