package io.tachograph.agent.inside;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Defines the classes of {@code io.tachograph.bootstrap} one by one in the bootstrap loader. If a
 * definition fails, the jar is appended to the bootstrap search path. The JVM then prints a warning
 * into the program's output, and no longer loads the program's classes from the CDS archive, so the
 * program starts more slowly.
 */
final class BootstrapClasses {
    private static final String PREFIX = "io/tachograph/bootstrap/";

    private BootstrapClasses() {}

    static void install(Instrumentation instrumentation, JarFile jar) throws IOException {
        try {
            define(instrumentation, read(jar));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            instrumentation.appendToBootstrapClassLoaderSearch(jar);
        }
    }

    private static Map<String, byte[]> read(JarFile jar) throws IOException {
        Map<String, byte[]> classes = new LinkedHashMap<>();
        for (JarEntry entry : Collections.list(jar.entries())) {
            String path = entry.getName();
            if (path.startsWith(PREFIX)
                    && path.endsWith(".class")
                    && !path.endsWith("package-info.class")) {
                try (InputStream in = jar.getInputStream(entry)) {
                    classes.put(
                            path.substring(0, path.length() - ".class".length()).replace('/', '.'),
                            in.readAllBytes());
                }
            }
        }
        return classes;
    }

    /**
     * A class can be defined only after its supertypes. If a supertype is missing, the class is
     * tried again after the others.
     */
    private static void define(Instrumentation instrumentation, Map<String, byte[]> classes)
            throws ReflectiveOperationException {
        Module own = BootstrapClasses.class.getModule();
        Map<String, Set<Module>> exports = Map.of("jdk.internal.misc", Set.of(own));
        instrumentation.redefineModule(
                Object.class.getModule(), Set.of(), exports, Map.of(), Set.of(), Map.of());
        Class<?> type = Class.forName("jdk.internal.misc.Unsafe");
        Object unsafe = type.getMethod("getUnsafe").invoke(null);
        Method define =
                type.getMethod(
                        "defineClass",
                        String.class,
                        byte[].class,
                        int.class,
                        int.class,
                        ClassLoader.class,
                        ProtectionDomain.class);
        List<String> left = new ArrayList<>(classes.keySet());
        while (!left.isEmpty()) {
            int before = left.size();
            for (String name : List.copyOf(left)) {
                byte[] bytes = classes.get(name);
                try {
                    define.invoke(unsafe, name, bytes, 0, bytes.length, null, null);
                    left.remove(name);
                } catch (InvocationTargetException e) {
                    if (!(e.getCause() instanceof NoClassDefFoundError)) {
                        throw e;
                    }
                }
            }
            if (left.size() == before) {
                throw new NoClassDefFoundError(String.join(", ", left));
            }
        }
    }
}
