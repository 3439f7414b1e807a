package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

/** Inlined into the constructor of {@code ThreadPoolExecutor.Worker}. */
final class WorkerAdvice {
    private WorkerAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    static void exit(
            @Advice.This Object worker, @Advice.FieldValue("firstTask") Runnable firstTask) {
        Tasks.first(worker, firstTask);
    }
}
