package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.OpenedClassReader;

/**
 * Watches a constructor from the return of its {@code super(...)} or {@code this(...)} on. Before
 * that no exception can be caught (JVMS 4.10.1.9: an uninitialised {@code this} may not reach a
 * handler), so a call entered there could stay open for ever; after it, field initialisers and body
 * are all there. What the arguments and the constructor above do is not in it.
 *
 * <pre>
 *        ...  invokespecial super.&lt;init&gt;
 *   from:     constructorEnter(operation)
 *        ...  body; before each return: constructorExit(operation)
 *   to, handler:  constructorFailed(thrown, operation); athrow
 * </pre>
 */
final class ConstructorVisitor extends MethodVisitor {
    private static final String RECORDER = Recorder.class.getName().replace('.', '/');
    private static final String INIT = "<init>";

    private final String owner;
    private final int operation;

    /** Ending of the recorder's methods. */
    private final String sort;

    private final Label from = new Label();

    /**
     * Objects made but not yet initialised: an {@code <init>} beside those is the one of {@code
     * this}.
     */
    private int made;

    private boolean inside;

    private ConstructorVisitor(MethodVisitor next, String owner, int operation, String sort) {
        super(OpenedClassReader.ASM_API, next);
        this.owner = owner;
        this.operation = operation;
        this.sort = sort;
    }

    /** Makes a visitor for each constructor. */
    static final class Wrapper
            implements AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper {
        private final String sort;

        /**
         * @param sort empty for calls that are recorded, {@code Counted} for those that are counted
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
            return new ConstructorVisitor(next, type.getInternalName(), operation, sort);
        }
    }

    @Override
    public void visitTypeInsn(int opcode, String type) {
        super.visitTypeInsn(opcode, type);
        if (opcode == Opcodes.NEW) {
            made++;
        }
    }

    @Override
    public void visitMethodInsn(
            int opcode, String type, String name, String descriptor, boolean isInterface) {
        super.visitMethodInsn(opcode, type, name, descriptor, isInterface);
        if (inside || opcode != Opcodes.INVOKESPECIAL || !name.equals(INIT)) {
            return;
        }
        if (made > 0) {
            made--;
        } else {
            inside = true;
            super.visitLabel(from);
            call("constructorEnter", "(I)V");
        }
    }

    @Override
    public void visitInsn(int opcode) {
        if (inside && opcode == Opcodes.RETURN) {
            call("constructorExit", "(I)V");
        }
        super.visitInsn(opcode);
    }

    @Override
    public void visitMaxs(int stack, int locals) {
        if (inside) {
            Label to = new Label();
            super.visitLabel(to);
            // Last in the table, so the constructor's own handlers come first.
            super.visitTryCatchBlock(from, to, to, null);
            super.visitFrame(
                    Opcodes.F_NEW,
                    1,
                    new Object[] {owner},
                    1,
                    new Object[] {"java/lang/Throwable"});
            super.visitInsn(Opcodes.DUP);
            call("constructorFailed", "(Ljava/lang/Throwable;I)V");
            super.visitInsn(Opcodes.ATHROW);
        }
        super.visitMaxs(Math.max(stack + 1, 3), locals);
    }

    private void call(String method, String descriptor) {
        super.visitLdcInsn(operation);
        super.visitMethodInsn(Opcodes.INVOKESTATIC, RECORDER, method + sort, descriptor, false);
    }
}
