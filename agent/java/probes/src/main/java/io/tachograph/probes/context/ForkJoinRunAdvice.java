package io.tachograph.probes.context;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;
import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.Advice;

/** Inlined into {@code ForkJoinTask.doExec}. */
final class ForkJoinRunAdvice {
    private ForkJoinRunAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static Context enter(@Advice.This Object task, @Advice.Local("before") Context before) {
        Context origin = Tasks.take(task);
        if (origin != null) {
            before = Recorder.attach(origin);
        }
        return origin;
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Enter Context origin, @Advice.Local("before") Context before) {
        if (origin != null) {
            Recorder.detach(before);
        }
    }
}
