package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Outermost;

import net.bytebuddy.asm.Advice;

/**
 * Inlined where a pool starts a thread. Even if the pool starts the thread to run a certain task,
 * the thread does not belong to that task.
 */
final class PoolThreadAdvice {
    private PoolThreadAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static boolean enter() {
        return Outermost.enter(Outermost.POOL_THREAD);
    }

    @Advice.OnMethodExit(suppress = Throwable.class, onThrowable = Throwable.class)
    static void exit(@Advice.Enter boolean isOutermost) {
        if (isOutermost) {
            Outermost.leave(Outermost.POOL_THREAD);
        }
    }
}
