package io.tachograph.core.instrument;

import io.tachograph.bootstrap.AdviceFaults;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;

/** What a probe needs to install itself. */
public final class ProbeSetup {
    private final Settings settings;
    private final AgentLog log;
    private final Selection selection;
    private final WatchedClasses watched;
    private final Advice.WithCustomMapping mapping;

    /** The probe that installs itself. */
    private String probe = "";

    ProbeSetup(Settings settings, AgentLog log, Selection selection, WatchedClasses watched) {
        this.settings = settings;
        this.log = log;
        this.selection = selection;
        this.watched = watched;
        this.mapping = Advice.withCustomMapping().bind(OperationConstant.FACTORY);
    }

    /** From now on advice belongs to a probe. @param name what it is called */
    void of(String name) {
        probe = name;
    }

    public Settings settings() {
        return settings;
    }

    public AgentLog log() {
        return log;
    }

    /** Which methods the person wants to see. */
    Selection selection() {
        return selection;
    }

    /** Where it is written down what was decided. */
    WatchedClasses watched() {
        return watched;
    }

    /**
     * Puts advice into the methods that match. It is inlined: it may refer to {@code
     * io.tachograph.bootstrap} and to what the instrumented class itself can see, and should say
     * {@code suppress = Throwable.class}: what is suppressed is counted, and told ({@link
     * AdviceFaults}). A parameter with {@link OperationId} is the method's own
     * operation.
     */
    public AgentBuilder.Transformer advice(
            Class<?> advice, ElementMatcher<? super MethodDescription> methods) {
        Advice compiled = compile(advice);
        return (builder, type, loader, module, domain) -> builder.visit(compiled.on(methods));
    }

    /** The advice by itself, for a transformer that does more. */
    public Advice compile(Class<?> advice) {
        int place = AdviceFaults.place(probe, advice.getSimpleName());
        return mapping.to(advice, ClassFileLocator.ForClassLoader.of(advice.getClassLoader()))
                .withExceptionHandler(new FaultHandler(place));
    }
}
