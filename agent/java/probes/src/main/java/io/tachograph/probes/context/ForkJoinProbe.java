package io.tachograph.probes.context;

import static net.bytebuddy.matcher.ElementMatchers.isPrivate;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import io.tachograph.core.instrument.Probe;
import io.tachograph.core.instrument.ProbeSetup;

import net.bytebuddy.agent.builder.AgentBuilder;

import java.util.Set;

/**
 * Tasks submitted with a method of {@code ForkJoinPool}, including tasks of {@code
 * CompletableFuture} without an executor. The newer public methods {@code schedule} and {@code
 * externalSubmit} are not instrumented. Forked tasks are not followed, because divided work has too
 * many parts to store the origin of each.
 */
public final class ForkJoinProbe implements Probe {
    private static final String POOL = "java.util.concurrent.ForkJoinPool";
    private static final String TASK = "java.util.concurrent.ForkJoinTask";

    @Override
    public String name() {
        return "fork-join";
    }

    @Override
    public Set<String> jdkTypes() {
        return Set.of(POOL, TASK);
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Loaded.now(POOL, TASK);
        // The private method that submissions call is externalSubmit up to JDK 18, poolSubmit after
        // that.
        return builder.type(named(POOL))
                .transform(
                        setup.advice(
                                HandOverAdvice.class,
                                named("externalSubmit").and(isPrivate()).and(takesArguments(1))))
                .transform(
                        setup.advice(
                                ForkJoinSubmitAdvice.class,
                                named("poolSubmit").and(takesArguments(2))))
                .transform(
                        setup.advice(
                                PoolThreadAdvice.class,
                                named("createWorker").and(takesArguments(0))))
                .type(named(TASK))
                .transform(
                        setup.advice(
                                ForkJoinRunAdvice.class, named("doExec").and(takesArguments(0))));
    }
}
