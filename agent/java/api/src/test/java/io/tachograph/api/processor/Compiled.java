package io.tachograph.api.processor;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** One source file, compiled in memory with the processor. */
public final class Compiled {
    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

    private final Map<String, ByteArrayOutputStream> classes = new HashMap<>();

    /** Errors and warnings of the compiler: {@code line: message}. */
    public final List<String> said;

    private Compiled(String className, String source) {
        DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
        JavaFileManager files =
                new Memory(COMPILER.getStandardFileManager(found, Locale.ROOT, null));
        StringWriter out = new StringWriter();
        List<String> options = List.of("-Xlint:all,-processing", "-classpath", "target/classes");
        JavaCompiler.CompilationTask task =
                COMPILER.getTask(
                        out, files, found, options, null, List.of(new Source(className, source)));
        task.setProcessors(List.of(new RecordProcessor()));
        task.call();
        said = found.getDiagnostics().stream().map(Compiled::shown).collect(Collectors.toList());
    }

    /** @param source the source after {@code package p;} */
    public static Compiled of(String className, String source) {
        return new Compiled("p." + className, "package p; " + source);
    }

    private static String shown(Diagnostic<? extends JavaFileObject> said) {
        return said.getLineNumber() + ": " + said.getMessage(Locale.ROOT);
    }

    /**
     * Returns a class loader with the compiled classes and the API, separate from the classes of
     * the test.
     *
     * @param more directories of further classes, such as those of the agent
     */
    public ClassLoader apart(Path... more) throws IOException {
        List<URL> urls = new ArrayList<>();
        urls.add(Path.of("target/classes").toUri().toURL());
        for (Path path : more) {
            urls.add(path.toUri().toURL());
        }
        return new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader()) {
            @Override
            protected Class<?> findClass(String name) throws ClassNotFoundException {
                Class<?> own = define(this, name);
                return own != null ? own : super.findClass(name);
            }

            private Class<?> define(ClassLoader loader, String name) {
                ByteArrayOutputStream bytes = classes.get(name);
                return bytes == null
                        ? null
                        : defineClass(name, bytes.toByteArray(), 0, bytes.size());
            }
        };
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String className, String text) {
            super(URI.create("string:///" + className.replace('.', '/') + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    private final class Memory extends ForwardingJavaFileManager<JavaFileManager> {
        Memory(JavaFileManager files) {
            super(files);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            if (kind == JavaFileObject.Kind.CLASS) {
                classes.put(name, bytes);
            }
            URI uri = URI.create("memory:///" + name.replace('.', '/') + kind.extension);
            return new SimpleJavaFileObject(uri, kind) {
                @Override
                public OutputStream openOutputStream() {
                    return bytes;
                }

                @Override
                public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                    return bytes.toString(java.nio.charset.StandardCharsets.UTF_8);
                }
            };
        }
    }
}
