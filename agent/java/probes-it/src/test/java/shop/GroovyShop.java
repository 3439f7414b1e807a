package shop;

import groovy.cli.CliBuilderException;
import groovy.lang.GroovyClassLoader;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;

/**
 * Classes written in Groovy. Its compiler generates a branch for each super constructor to which
 * {@code super(...)} may refer. The argument is the jar of an old version of Groovy, whose class
 * files have no stack map frames.
 */
public final class GroovyShop {
    private static final String SOURCE =
            """
            package shop.made
            class Above {
                final String how
                Above(String text) { how = 'text ' + text }
                Above(Integer number) { how = 'number ' + number }
                Above(Object other) { how = 'other' }
            }
            class Below extends Above {
                final int doubled
                Below(value, int number) {
                    super(value)
                    for (int i = 0; i < 2; i++) { doubled += number }
                    if (number < 0) { throw new IllegalArgumentException('negative') }
                }
                Below(value) { this(value, 21) }
            }
            """;

    private GroovyShop() {}

    public static void main(String[] arguments) throws Exception {
        System.out.println("said " + new CliBuilderException("no stock").getMessage());
        try (GroovyClassLoader loader = new GroovyClassLoader()) {
            loader.parseClass(SOURCE);
            Class<?> below = loader.loadClass("shop.made.Below");
            for (Object value : List.of("x", 7, 1.5)) {
                Object made = below.getConstructor(Object.class).newInstance(value);
                System.out.println(
                        "made "
                                + below.getMethod("getHow").invoke(made)
                                + " "
                                + below.getMethod("getDoubled").invoke(made));
            }
            try {
                below.getConstructor(Object.class, int.class).newInstance("x", -1);
            } catch (ReflectiveOperationException e) {
                System.out.println("made nothing, " + e.getCause());
            }
        }
        old(Path.of(arguments[0]));
    }

    /**
     * Initialises classes of the jar, so that the JVM verifies them. No instance is made, because
     * this version of Groovy is too old to run on a new JDK.
     */
    private static void old(Path jar) throws Exception {
        URL[] urls = {jar.toUri().toURL()};
        try (URLClassLoader loader =
                new URLClassLoader(urls, ClassLoader.getPlatformClassLoader())) {
            for (String name :
                    List.of(
                            "groovy.inspect.swingui.CompilePhaseAdapter",
                            "groovy.inspect.swingui.GeneratedBytecodeAwareGroovyClassLoader",
                            "org.codehaus.groovy.control.customizers.ASTTransformationCustomizer",
                            "org.codehaus.groovy.tools.shell.util.CurlyCountingGroovyLexer",
                            "org.codehaus.groovy.transform"
                                    + ".ASTTestTransformation$AssertionSourceDelegatingSourceUnit")) {
                Class.forName(name, true, loader);
                System.out.println("verified " + name);
            }
        }
    }
}
