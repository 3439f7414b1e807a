package io.tachograph.core.instrument;

import io.tachograph.bootstrap.AdviceFaults;

import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.implementation.bytecode.StackManipulation;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * Byte code of inlined advice that handles an exception of its own, on the operand stack:
 *
 * <pre>{@code
 * AdviceFaults.LATEST[place] = thrown;
 * AdviceFaults.COUNTS[place]++;
 * }</pre>
 *
 * No call and no jump: neither call stack, which may be exhausted, nor a stack map frame is needed.
 */
final class FaultHandler extends StackManipulation.AbstractBase {
    private static final String FAULTS = AdviceFaults.class.getName().replace('.', '/');

    /** Operand stack besides the exception: array twice, index twice, a long. */
    private static final int STACK = 5;

    private final int place;

    FaultHandler(int place) {
        this.place = place;
    }

    @Override
    public Size apply(MethodVisitor code, Implementation.Context context) {
        code.visitFieldInsn(Opcodes.GETSTATIC, FAULTS, "LATEST", "[Ljava/lang/Throwable;");
        code.visitInsn(Opcodes.SWAP);
        code.visitIntInsn(Opcodes.SIPUSH, place);
        code.visitInsn(Opcodes.SWAP);
        code.visitInsn(Opcodes.AASTORE);
        code.visitFieldInsn(Opcodes.GETSTATIC, FAULTS, "COUNTS", "[J");
        code.visitIntInsn(Opcodes.SIPUSH, place);
        code.visitInsn(Opcodes.DUP2);
        code.visitInsn(Opcodes.LALOAD);
        code.visitInsn(Opcodes.LCONST_1);
        code.visitInsn(Opcodes.LADD);
        code.visitInsn(Opcodes.LASTORE);
        return new Size(-1, STACK);
    }
}
