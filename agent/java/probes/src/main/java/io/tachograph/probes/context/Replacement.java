package io.tachograph.probes.context;

import io.tachograph.bootstrap.probe.Tasks;

import net.bytebuddy.asm.MemberSubstitution.Substitution;
import net.bytebuddy.asm.MemberSubstitution.Target;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.description.type.TypeList;
import net.bytebuddy.implementation.bytecode.StackManipulation;
import net.bytebuddy.implementation.bytecode.member.FieldAccess;
import net.bytebuddy.implementation.bytecode.member.MethodInvocation;
import net.bytebuddy.implementation.bytecode.member.MethodVariableAccess;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.JavaConstant;

import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * Replaces a call inside a pool with a call of a method of {@link Tasks}. The method gets the
 * arguments of the original call and, if requested, the pool's queue and the first argument of the
 * enclosing method.
 */
final class Replacement implements Substitution.Factory<Target> {
    private final MethodDescription method;
    private final boolean withQueueAndArgument;

    private Replacement(String name, boolean withQueueAndArgument) {
        Method found =
                Arrays.stream(Tasks.class.getMethods())
                        .filter(each -> each.getName().equals(name))
                        .findFirst()
                        .orElseThrow();
        this.method = new MethodDescription.ForLoadedMethod(found);
        this.withQueueAndArgument = withQueueAndArgument;
    }

    static Replacement by(String name) {
        return new Replacement(name, false);
    }

    /** Only for calls in methods of {@code ThreadPoolExecutor}, which has the queue as a field. */
    static Replacement withQueueAndArgument(String name) {
        return new Replacement(name, true);
    }

    @Override
    public Substitution<Target> make(
            TypeDescription type, MethodDescription around, TypePool pool) {
        StackManipulation call = MethodInvocation.invoke(method);
        StackManipulation all = withQueueAndArgument ? more(type, around, call) : call;
        return new Substitution<>() {
            @Override
            public StackManipulation resolve(
                    Target target,
                    TypeList.Generic parameters,
                    TypeDescription.Generic result,
                    JavaConstant.MethodHandle handle,
                    StackManipulation original,
                    int freeOffset) {
                return all;
            }
        };
    }

    private static StackManipulation more(
            TypeDescription type, MethodDescription around, StackManipulation call) {
        var queue = type.getDeclaredFields().filter(ElementMatchers.named("workQueue")).getOnly();
        return new StackManipulation.Compound(
                MethodVariableAccess.loadThis(),
                FieldAccess.forField(queue).read(),
                MethodVariableAccess.load(around.getParameters().get(0)),
                call);
    }
}
