package shop;

import groovyjarjarasm.asm.ClassWriter;
import groovyjarjarasm.asm.Label;
import groovyjarjarasm.asm.MethodVisitor;
import groovyjarjarasm.asm.Opcodes;

/**
 * Generates the class {@code shop.Odd} and makes two instances of it. Its constructor has two
 * branches that call {@code super()}. Both branches are reached only by jumps from later code, and
 * there are no stack map frames. No compiler writes such a constructor, but the JVM accepts it.
 */
public final class OddShop {
    private OddShop() {}

    private static byte[] odd() {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        int isPublic = Opcodes.ACC_PUBLIC;
        writer.visit(Opcodes.V1_5, isPublic, "shop/Odd", null, "java/lang/Object", null);
        MethodVisitor code = writer.visitMethod(isPublic, "<init>", "(Z)V", null, null);
        Label choice = new Label();
        Label first = new Label();
        Label second = new Label();
        Label end = new Label();
        code.visitCode();
        code.visitJumpInsn(Opcodes.GOTO, choice);
        for (Label branch : new Label[] {first, second}) {
            code.visitLabel(branch);
            code.visitVarInsn(Opcodes.ALOAD, 0);
            code.visitMethodInsn(
                    Opcodes.INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
            code.visitJumpInsn(Opcodes.GOTO, end);
        }
        code.visitLabel(choice);
        code.visitVarInsn(Opcodes.ILOAD, 1);
        code.visitJumpInsn(Opcodes.IFEQ, first);
        code.visitJumpInsn(Opcodes.GOTO, second);
        code.visitLabel(end);
        code.visitInsn(Opcodes.RETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
        writer.visitEnd();
        return writer.toByteArray();
    }

    private static final class Maker extends ClassLoader {
        Class<?> make(byte[] bytes) {
            return defineClass("shop.Odd", bytes, 0, bytes.length);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var constructor = new Maker().make(odd()).getConstructor(boolean.class);
        for (boolean branch : new boolean[] {true, false}) {
            System.out.println("made " + constructor.newInstance(branch).getClass().getName());
        }
    }
}
