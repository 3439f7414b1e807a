package capture;

import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Arrays;

/**
 * A second agent for the tests, which compares the byte code from the first agent with the original
 * byte code.
 */
public final class Capture {
    private Capture() {}

    public static void premain(String watched, Instrumentation instrumentation) {
        instrumentation.addTransformer(
                new ClassFileTransformer() {
                    @Override
                    public byte[] transform(
                            ClassLoader loader,
                            String name,
                            Class<?> type,
                            ProtectionDomain domain,
                            byte[] bytes) {
                        if (name != null && name.equals(watched)) {
                            System.out.println("bytes " + compare(name, bytes));
                        }
                        return null;
                    }
                },
                true);
    }

    private static String compare(String name, byte[] bytes) {
        try (InputStream in = ClassLoader.getSystemResourceAsStream(name + ".class")) {
            return Arrays.equals(in.readAllBytes(), bytes) ? "original" : "changed";
        } catch (java.io.IOException e) {
            return e.toString();
        }
    }
}
