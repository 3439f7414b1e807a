package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code ForkJoinPool.poolSubmit(boolean, ForkJoinTask)}. */
final class ForkJoinSubmitAdvice {
    private ForkJoinSubmitAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(1) Object task) {
        Tasks.handOver(task);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Argument(1) Object task, @Advice.Thrown Throwable thrown) {
        if (thrown != null) {
            Tasks.take(task);
        }
    }
}
