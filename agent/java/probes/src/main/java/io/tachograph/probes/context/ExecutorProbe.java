package io.tachograph.probes.context;

import static net.bytebuddy.matcher.ElementMatchers.isDeclaredBy;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.bootstrap.probe.Tasks;
import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.MemberSubstitution;

import java.lang.reflect.Method;
import java.util.Set;

/**
 * Tasks given to {@code ThreadPoolExecutor} and {@code ScheduledThreadPoolExecutor}, and with them
 * most of {@code Executors} and {@code CompletableFuture} with an executor. A periodic task keeps
 * its origin for the first run only: what it does later belongs to nobody.
 */
public final class ExecutorProbe implements Probe {
    private static final String POOL = "java.util.concurrent.ThreadPoolExecutor";
    private static final String SCHEDULED = "java.util.concurrent.ScheduledThreadPoolExecutor";

    @Override
    public String name() {
        return "executor";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(POOL, SCHEDULED);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Loaded.now(POOL, SCHEDULED);
        var run =
                MemberSubstitution.relaxed()
                        .method(named("run").and(isDeclaredBy(Runnable.class)))
                        .replaceWith(runMethod())
                        .on(named("runWorker"));
        return builder.type(named(POOL))
                .transform(
                        setup.advice(
                                HandOverAdvice.class,
                                named("execute").and(takesArgument(0, Runnable.class))))
                .transform(
                        setup.advice(
                                PoolThreadAdvice.class, named("addWorker").and(takesArguments(2))))
                .transform((type, description, loader, module, domain) -> type.visit(run))
                .type(named(SCHEDULED))
                .transform(
                        setup.advice(
                                HandOverAdvice.class,
                                named("delayedExecute").and(takesArguments(1))));
    }

    private static Method runMethod() {
        try {
            return Tasks.class.getMethod("run", Runnable.class);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }
}
