package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

import java.util.concurrent.BlockingQueue;

/** Inlined into {@code ThreadPoolExecutor.remove}. */
final class RemoveAdvice {
    private RemoveAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(
            @Advice.Argument(0) Object task,
            @Advice.FieldValue("workQueue") BlockingQueue<Runnable> queue,
            @Advice.Return boolean isRemoved) {
        if (isRemoved) {
            Tasks.removed(queue, task);
        }
    }
}
