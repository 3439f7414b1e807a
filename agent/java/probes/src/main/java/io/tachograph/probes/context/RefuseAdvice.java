package io.tachograph.probes.context;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.RejectedExecutionHandler;

/**
 * Inlined into {@code ThreadPoolExecutor.reject}. The JDK's handlers throw, run the task, discard a
 * task or submit the task again. The behaviour of a handler of the program is unknown.
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
