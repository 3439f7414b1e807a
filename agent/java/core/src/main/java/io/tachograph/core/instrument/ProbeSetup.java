package io.tachograph.core.instrument;

import io.tachograph.bootstrap.AdviceFaults;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;

/** The context in which a probe installs itself. */
public final class ProbeSetup {
    private final Settings settings;
    private final AgentLog log;
    private final Selection selection;
    private final WatchedClasses watched;
    private final Advice.WithCustomMapping mapping;

    private String probe = "";

    ProbeSetup(Settings settings, AgentLog log, Selection selection, WatchedClasses watched) {
        this.settings = settings;
        this.log = log;
        this.selection = selection;
        this.watched = watched;
        this.mapping = Advice.withCustomMapping().bind(OperationConstant.FACTORY);
    }

    /** Sets the probe of all advice that is compiled from now on. */
    void of(String name) {
        probe = name;
    }

    public Settings settings() {
        return settings;
    }

    public AgentLog log() {
        return log;
    }

    Selection selection() {
        return selection;
    }

    WatchedClasses watched() {
        return watched;
    }

    /**
     * Puts advice into the matching methods. The advice is inlined, so it may refer only to {@code
     * io.tachograph.bootstrap} and to classes that the instrumented class can see. Advice should
     * set {@code suppress = Throwable.class}; suppressed exceptions are counted and logged ({@link
     * AdviceFaults}). A parameter with {@link OperationId} is the id of the method's operation.
     */
    public AgentBuilder.Transformer advice(
            Class<?> advice, ElementMatcher<? super MethodDescription> methods) {
        Advice compiled = compile(advice);
        return (builder, type, loader, module, domain) -> builder.visit(compiled.on(methods));
    }

    /** Returns the compiled advice, for a transformer with more steps than {@link #advice}. */
    public Advice compile(Class<?> advice) {
        int place = AdviceFaults.place(probe, advice.getSimpleName());
        return mapping.to(advice, ClassFileLocator.ForClassLoader.of(advice.getClassLoader()))
                .withExceptionHandler(new FaultHandler(place));
    }
}
