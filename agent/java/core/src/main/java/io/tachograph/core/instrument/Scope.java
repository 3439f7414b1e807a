package io.tachograph.core.instrument;

import io.tachograph.core.log.AgentLog;

import java.util.List;

/** Classes that are never looked at, whatever the patterns say. */
final class Scope {
    /** Ourselves, and other agents: what they make cannot be described, and is nobody's program. */
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
        // Byte Buddy makes classes of its own, in loaders whose code is beside ours.
        boolean isHelper =
                loader != null && own != null && loader.getClass().getClassLoader() == own;
        return loader == own || isHelper || startsWithAny(name, OWN);
    }

    static boolean isJdk(String name) {
        return startsWithAny(name, JDK);
    }

    /** What is put into the loader's classes can be resolved there. */
    boolean isVisibleIn(ClassLoader loader) {
        return visibility.of(loader);
    }

    /**
     * May methods of this class be selected? The loader, which may have to be asked, comes last.
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
