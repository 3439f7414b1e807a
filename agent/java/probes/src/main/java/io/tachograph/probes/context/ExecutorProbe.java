package io.tachograph.probes.context;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.isDeclaredBy;
import static net.bytebuddy.matcher.ElementMatchers.isSubTypeOf;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.asm.MemberSubstitution;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;

import java.util.Queue;
import java.util.Set;

/**
 * Tasks submitted to {@code ThreadPoolExecutor} and {@code ScheduledThreadPoolExecutor}. Most pools
 * of {@code Executors} are of these classes, and {@code CompletableFuture} can run on them. The
 * probe instruments the calls that put a task into the queue, run it, or remove it without running
 * it. It also instruments the start of a worker, because a task may bypass the queue and start a
 * new thread. Only the first run of a periodic task has an origin.
 */
public final class ExecutorProbe implements Probe {
    private static final String POOL = "java.util.concurrent.ThreadPoolExecutor";
    private static final String WORKER = POOL + "$Worker";
    private static final String DISCARD_OLDEST = POOL + "$DiscardOldestPolicy";
    private static final String SCHEDULED = "java.util.concurrent.ScheduledThreadPoolExecutor";

    @Override
    public String name() {
        return "executor";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(POOL, WORKER, DISCARD_OLDEST, SCHEDULED);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Loaded.now(POOL, WORKER, DISCARD_OLDEST, SCHEDULED);
        var ofQueue = isDeclaredBy(isSubTypeOf(Queue.class));
        var offer =
                replace(
                        named("offer").and(takesArguments(1)).and(ofQueue),
                        Replacement.by("offer"),
                        "execute");
        var run =
                replace(
                        named("run").and(isDeclaredBy(Runnable.class)),
                        Replacement.withQueueAndArgument("run"),
                        "runWorker");
        var discard =
                replace(
                        named("poll").and(takesArguments(0)).and(ofQueue),
                        Replacement.by("discard"),
                        "rejectedExecution");
        return builder.type(named(POOL))
                .transform((type, description, loader, module, domain) -> type.visit(offer))
                .transform((type, description, loader, module, domain) -> type.visit(run))
                .transform(
                        setup.advice(
                                RemoveAdvice.class,
                                named("remove").and(takesArgument(0, Runnable.class))))
                .transform(setup.advice(DrainAdvice.class, named("drainQueue")))
                .transform(
                        setup.advice(
                                RefuseAdvice.class,
                                named("reject").and(takesArgument(0, Runnable.class))))
                .transform(
                        setup.advice(
                                PoolThreadAdvice.class, named("addWorker").and(takesArguments(2))))
                .type(named(WORKER))
                .transform(setup.advice(WorkerAdvice.class, isConstructor()))
                .type(named(DISCARD_OLDEST))
                .transform((type, description, loader, module, domain) -> type.visit(discard))
                .type(named(SCHEDULED))
                .transform(
                        setup.advice(
                                HandOverAdvice.class,
                                named("delayedExecute").and(takesArguments(1))));
    }

    private static AsmVisitorWrapper replace(
            ElementMatcher<? super MethodDescription> calls, Replacement by, String in) {
        return MemberSubstitution.relaxed().method(calls).replaceWith(by).on(named(in));
    }
}
