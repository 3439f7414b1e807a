package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Recorder;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.config.Setting;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.utility.JavaModule;

import java.security.ProtectionDomain;

/** Records or counts the calls of the methods and constructors that the rules select. */
public final class MethodProbe implements Probe {
    @Override
    public String name() {
        return "methods";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Selection selection = setup.selection();
        if (selection.isEmpty()) {
            setup.log()
                    .say(
                            "no methods are recorded: include is empty (for all methods of a"
                                    + " package: "
                                    + Setting.INCLUDE.variable()
                                    + "='com.shop..*', or while the program runs: tacho probes on"
                                    + " 'com.shop..*')");
        }
        WatchedClasses watched = setup.watched();
        return builder.type(
                        (type, loader, module, redefined, domain) ->
                                isWatched(selection, watched, type, loader))
                .transform(
                        new Transformer(
                                selection,
                                watched,
                                setup.compile(MethodAdvice.class),
                                setup.compile(CountingAdvice.class)));
    }

    /**
     * Stores the decision for a class that a rule may match. Returns false if the class has no
     * method to instrument; the class then loses earlier advice of this probe.
     */
    private static boolean isWatched(
            Selection selection, WatchedClasses watched, TypeDescription type, ClassLoader loader) {
        if (Scope.isJdk(type.getName())) {
            return false;
        }
        Decision decision = selection.decide(type);
        if (!decision.concernsNobody() || watched.get(loader, type.getName()) != null) {
            watched.put(loader, type.getName(), decision);
        }
        return !decision.watchesNothing();
    }

    private static final class Transformer implements AgentBuilder.Transformer {
        private final Selection selection;
        private final WatchedClasses watched;
        private final Advice recording;
        private final Advice counting;

        Transformer(
                Selection selection, WatchedClasses watched, Advice recording, Advice counting) {
            this.selection = selection;
            this.watched = watched;
            this.recording = recording;
            this.counting = counting;
        }

        @Override
        public DynamicType.Builder<?> transform(
                DynamicType.Builder<?> builder,
                TypeDescription type,
                ClassLoader loader,
                JavaModule module,
                ProtectionDomain domain) {
            // The rules may have changed since the class was matched.
            Decision decision = selection.decide(type);
            watched.put(loader, type.getName(), decision);
            var constructors =
                    new AsmVisitorWrapper.ForDeclaredMethods()
                            .readerFlags(net.bytebuddy.jar.asm.ClassReader.EXPAND_FRAMES)
                            .constructor(
                                    method -> decision.of(method) == State.RECORD,
                                    new ConstructorVisitor.Wrapper(""))
                            .constructor(
                                    method -> decision.of(method) == State.AGGREGATE,
                                    new ConstructorVisitor.Wrapper("Counted"));
            return builder.visit(recording.on(methods(decision, State.RECORD)))
                    .visit(counting.on(methods(decision, State.AGGREGATE)))
                    .visit(constructors);
        }

        private static ElementMatcher<MethodDescription> methods(Decision decision, State state) {
            return method -> method.isMethod() && decision.of(method) == state;
        }
    }

    /**
     * The code that is inlined into every recorded method; for constructors see {@link
     * ConstructorVisitor}. First step of a recorded call; after: {@link ThreadBuffer}.
     */
    static final class MethodAdvice {
        private MethodAdvice() {}

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static ThreadBuffer enter(@OperationId int operation, @Advice.Local("call") int call) {
            ThreadBuffer buffer = Recorder.buffer();
            call = buffer.enter(operation);
            return buffer;
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(
                @Advice.Enter ThreadBuffer buffer,
                @Advice.Local("call") int call,
                @Advice.Thrown Throwable thrown) {
            if (buffer != null) {
                if (thrown == null) {
                    buffer.exit(call);
                } else {
                    buffer.exitFailed(call, thrown);
                }
            }
        }
    }

    /** As {@link MethodAdvice}, for methods that are counted instead of recorded. */
    static final class CountingAdvice {
        private CountingAdvice() {}

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static ThreadBuffer enter(@OperationId int operation, @Advice.Local("call") int call) {
            ThreadBuffer buffer = Recorder.buffer();
            call = buffer.enterCounted(operation);
            return buffer;
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(
                @Advice.Enter ThreadBuffer buffer,
                @Advice.Local("call") int call,
                @Advice.Thrown Throwable thrown) {
            if (buffer != null) {
                buffer.exitCounted(call, thrown != null);
            }
        }
    }
}
