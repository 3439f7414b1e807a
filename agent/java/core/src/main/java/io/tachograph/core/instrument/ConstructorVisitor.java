package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.jar.asm.Handle;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.OpenedClassReader;

import java.util.ArrayList;
import java.util.List;

/**
 * Records a constructor from the return of its {@code super(...)} or {@code this(...)} on. Before
 * that point no exception can be caught (JVMS 4.10.1.9: an uninitialised {@code this} must not
 * reach a handler), so a call that begins earlier might never end. The call includes field
 * initialisers and body. It includes neither the arguments of {@code super(...)} nor the
 * super constructor.
 *
 * <p>A constructor may have several branches, each with its own {@code super(...)}; Groovy
 * generates such constructors. The handler covers only the ranges in which {@link Initialised}
 * reports an initialised {@code this}.
 *
 * <pre>
 *        ...  invokespecial super.&lt;init&gt;
 *   from:     constructorEnter(operation)
 *        ...  goto end
 *   to:  ...  another branch: invokespecial super.&lt;init&gt;
 *   from:     constructorEnter(operation)
 *   end: ...  body; before each return: constructorExit(operation)
 *   to, handler:  constructorFailed(thrown, operation); athrow
 * </pre>
 */
final class ConstructorVisitor extends MethodVisitor {
    private static final String RECORDER = Recorder.class.getName().replace('.', '/');
    private static final Object[] NOTHING = {};

    private final int operation;

    /** Suffix of the names of the called methods of {@link Recorder}. */
    private final String sort;

    private final Initialised self;

    /** Start and end of each range of the handler, alternately. */
    private final List<Label> ranges = new ArrayList<>();

    private ConstructorVisitor(MethodVisitor next, Initialised self, int operation, String sort) {
        super(OpenedClassReader.ASM_API, next);
        this.self = self;
        this.operation = operation;
        this.sort = sort;
    }

    static final class Wrapper
            implements AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper {
        private final String sort;

        /**
         * @param sort empty for recorded calls, {@code Counted} for counted calls
         */
        Wrapper(String sort) {
            this.sort = sort;
        }

        @Override
        public MethodVisitor wrap(
                TypeDescription type,
                MethodDescription method,
                MethodVisitor next,
                Implementation.Context context,
                TypePool pool,
                int writerFlags,
                int readerFlags) {
            int operation = Recorder.operation(Operations.METHOD, OperationName.of(type, method));
            return new ConstructorVisitor(next, new Initialised(), operation, sort);
        }
    }

    @Override
    public void visitTypeInsn(int opcode, String type) {
        reach();
        super.visitTypeInsn(opcode, type);
        if (opcode == Opcodes.NEW) {
            self.made();
        }
    }

    @Override
    public void visitMethodInsn(
            int opcode, String type, String name, String descriptor, boolean isInterface) {
        reach();
        super.visitMethodInsn(opcode, type, name, descriptor, isInterface);
        if (opcode == Opcodes.INVOKESPECIAL && name.equals("<init>") && self.initialises()) {
            follow();
            call("constructorEnter", "(I)V");
        }
    }

    @Override
    public void visitInsn(int opcode) {
        reach();
        if (opcode == Opcodes.RETURN && self.is()) {
            call("constructorExit", "(I)V");
        }
        super.visitInsn(opcode);
        if (opcode == Opcodes.RETURN || opcode == Opcodes.ATHROW) {
            leave();
        }
    }

    @Override
    public void visitJumpInsn(int opcode, Label label) {
        reach();
        super.visitJumpInsn(opcode, label);
        self.goesTo(label);
        if (opcode == Opcodes.GOTO) {
            leave();
        }
    }

    @Override
    public void visitLookupSwitchInsn(Label fallback, int[] keys, Label[] labels) {
        reach();
        super.visitLookupSwitchInsn(fallback, keys, labels);
        switches(fallback, labels);
    }

    @Override
    public void visitTableSwitchInsn(int min, int max, Label fallback, Label... labels) {
        reach();
        super.visitTableSwitchInsn(min, max, fallback, labels);
        switches(fallback, labels);
    }

    private void switches(Label fallback, Label[] labels) {
        self.goesTo(fallback);
        for (Label label : labels) {
            self.goesTo(label);
        }
        leave();
    }

    @Override
    public void visitVarInsn(int opcode, int at) {
        reach();
        super.visitVarInsn(opcode, at);
        if (opcode == Opcodes.RET) {
            leave();
        }
    }

    @Override
    public void visitIntInsn(int opcode, int operand) {
        reach();
        super.visitIntInsn(opcode, operand);
    }

    @Override
    public void visitFieldInsn(int opcode, String type, String name, String descriptor) {
        reach();
        super.visitFieldInsn(opcode, type, name, descriptor);
    }

    @Override
    public void visitInvokeDynamicInsn(
            String name, String descriptor, Handle bootstrap, Object... arguments) {
        reach();
        super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments);
    }

    @Override
    public void visitLdcInsn(Object value) {
        reach();
        super.visitLdcInsn(value);
    }

    @Override
    public void visitIincInsn(int at, int increment) {
        reach();
        super.visitIincInsn(at, increment);
    }

    @Override
    public void visitMultiANewArrayInsn(String descriptor, int dimensions) {
        reach();
        super.visitMultiANewArrayInsn(descriptor, dimensions);
    }

    @Override
    public void visitTryCatchBlock(Label from, Label to, Label handler, String type) {
        super.visitTryCatchBlock(from, to, handler, type);
        self.catches(from, handler);
    }

    @Override
    public void visitLabel(Label label) {
        super.visitLabel(label);
        self.comesTo(label);
    }

    @Override
    public void visitFrame(int type, int count, Object[] locals, int depth, Object[] stack) {
        super.visitFrame(type, count, locals, depth, stack);
        self.frame(count, locals);
    }

    @Override
    public void visitMaxs(int stack, int locals) {
        if (!ranges.isEmpty()) {
            Label handler = new Label();
            super.visitLabel(handler);
            if (isOpen()) {
                ranges.add(handler);
            }
            // This handler is the last in the table, so the handlers of the constructor itself take
            // precedence.
            for (int at = 0; at < ranges.size(); at += 2) {
                super.visitTryCatchBlock(ranges.get(at), ranges.get(at + 1), handler, null);
            }
            super.visitFrame(Opcodes.F_NEW, 0, NOTHING, 1, new Object[] {"java/lang/Throwable"});
            super.visitInsn(Opcodes.DUP);
            call("constructorFailed", "(Ljava/lang/Throwable;I)V");
            super.visitInsn(Opcodes.ATHROW);
        }
        super.visitMaxs(Math.max(stack + 1, 3), locals);
    }

    private boolean isOpen() {
        return ranges.size() % 2 == 1;
    }

    /**
     * Called before each instruction. A range begins only at an instruction, not at a label or
     * frame, because the class file format forbids empty ranges.
     */
    private void reach() {
        self.reach();
        follow();
    }

    /** Begins or ends a range when the state has changed. */
    private void follow() {
        if (self.is() != isOpen()) {
            Label here = new Label();
            super.visitLabel(here);
            ranges.add(here);
        }
    }

    /**
     * Called after an instruction that never continues with the next instruction. At the next
     * instruction, {@code this} may have another state.
     */
    private void leave() {
        self.leave();
        follow();
    }

    private void call(String method, String descriptor) {
        super.visitLdcInsn(operation);
        super.visitMethodInsn(Opcodes.INVOKESTATIC, RECORDER, method + sort, descriptor, false);
    }
}
