package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

import java.util.List;
import java.util.concurrent.BlockingQueue;

/** Inlined into {@code ThreadPoolExecutor.drainQueue}, which {@code shutdownNow} calls. */
final class DrainAdvice {
    private DrainAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(
            @Advice.FieldValue("workQueue") BlockingQueue<Runnable> queue,
            @Advice.Return List<Runnable> tasks) {
        Tasks.removedAll(queue, tasks);
    }
}
