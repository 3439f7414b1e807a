package io.tachograph.core.instrument;

import io.tachograph.core.log.AgentLog;

import java.util.List;

/** Classes whose methods are never selected, even if a pattern matches them. */
final class Scope {
    /**
     * Classes of this agent outside its own class loader, of its library for declared records, and
     * of the agent of OpenTelemetry.
     */
    private static final List<String> OWN =
            List.of(
                    "io.tachograph.bootstrap.",
                    "io.tachograph.agent.",
                    "io.tachograph.api.",
                    "io.opentelemetry.javaagent.");

    private static final List<String> JDK =
            List.of(
                    "java.",
                    "javax.management.",
                    "javax.crypto.",
                    "javax.net.",
                    "javax.security.",
                    "jdk.",
                    "sun.",
                    "com.sun.",
                    "org.graalvm.",
                    "org.jcp.xml.");

    private final Visibility visibility;

    Scope(AgentLog log) {
        this.visibility = new Visibility(log);
    }

    boolean isOwn(String name, ClassLoader loader) {
        ClassLoader own = Scope.class.getClassLoader();
        // Byte Buddy generates helper classes in loaders that it creates for the agent's code.
        boolean isHelper =
                loader != null && own != null && loader.getClass().getClassLoader() == own;
        return loader == own || isHelper || startsWithAny(name, OWN);
    }

    static boolean isJdk(String name) {
        return startsWithAny(name, JDK);
    }

    /** True if the inlined code can be resolved in the classes of this loader. */
    boolean isVisibleIn(ClassLoader loader) {
        return visibility.of(loader);
    }

    /**
     * True if methods of this class may be selected. {@link #isVisibleIn} is called last, because
     * it may have to load a class.
     */
    boolean holds(String name, ClassLoader loader) {
        return !isJdk(name) && !isOwn(name, loader) && isVisibleIn(loader);
    }

    private static boolean startsWithAny(String name, List<String> prefixes) {
        for (String prefix : prefixes) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }
}
