package io.tachograph.core.instrument;

import io.tachograph.bootstrap.AdviceFaults;

import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.implementation.bytecode.StackManipulation;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * The byte code that handles an exception of inlined advice. The exception is on the operand stack:
 *
 * <pre>{@code
 * AdviceFaults.LATEST[place] = thrown;
 * AdviceFaults.COUNTS[place]++;
 * }</pre>
 *
 * The code has no call, because the call stack may be exhausted. It has no jump, so it needs no
 * stack map frame.
 */
final class FaultHandler extends StackManipulation.AbstractBase {
    private static final String FAULTS = AdviceFaults.class.getName().replace('.', '/');

    /**
     * Words of the operand stack in addition to the word of the exception. The second statement
     * needs 6 words (an array, an index and two longs); one of them is the word of the exception,
     * which the first statement has freed.
     */
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
