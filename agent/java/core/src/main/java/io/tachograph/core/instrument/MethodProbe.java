package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Recorder;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.config.Setting;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.utility.JavaModule;

import java.security.ProtectionDomain;

/** Watches the methods and constructors that {@code include} and {@code exclude} select. */
public final class MethodProbe implements Probe {
    @Override
    public String name() {
        return "methods";
    }

    @Override
    public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
        Selection selection =
                new Selection(
                        setup.settings().list(Setting.INCLUDE),
                        setup.settings().list(Setting.EXCLUDE),
                        setup.log());
        if (selection.isEmpty()) {
            setup.log()
                    .say(
                            "no methods are recorded: include is empty (for all of a package: "
                                    + Setting.INCLUDE.variable()
                                    + "='com.shop..*')");
            return builder;
        }
        return builder.type((type, loader, module, redefined, domain) -> selection.mayHold(type))
                .transform(new Transformer(selection, setup.compile(MethodAdvice.class)));
    }

    private static final class Transformer implements AgentBuilder.Transformer {
        private final Selection selection;
        private final Advice advice;

        Transformer(Selection selection, Advice advice) {
            this.selection = selection;
            this.advice = advice;
        }

        @Override
        public DynamicType.Builder<?> transform(
                DynamicType.Builder<?> builder,
                TypeDescription type,
                ClassLoader loader,
                JavaModule module,
                ProtectionDomain domain) {
            var constructors =
                    new AsmVisitorWrapper.ForDeclaredMethods()
                            .readerFlags(net.bytebuddy.jar.asm.ClassReader.EXPAND_FRAMES)
                            .constructor(
                                    method -> selection.holds(type, method),
                                    new ConstructorVisitor.Wrapper());
            return builder.visit(
                            advice.on(method -> method.isMethod() && selection.holds(type, method)))
                    .visit(constructors);
        }
    }

    /**
     * Inlined into every method that is watched. The buffer stays in a local variable from enter to
     * exit. The first step of a record; after: {@link ThreadBuffer}.
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
}
