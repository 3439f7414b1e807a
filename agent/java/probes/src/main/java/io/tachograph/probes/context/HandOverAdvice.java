package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

/** Inlined into methods with which a pool accepts a task. The task is the first argument. */
final class HandOverAdvice {
    private HandOverAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(0) Object task) {
        Tasks.handOver(task);
    }

    /** A rejected task does not run. */
    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Argument(0) Object task, @Advice.Thrown Throwable thrown) {
        if (thrown != null) {
            Tasks.take(task);
        }
    }
}
