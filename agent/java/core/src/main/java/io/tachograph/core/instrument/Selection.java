package io.tachograph.core.instrument;

import io.tachograph.core.log.AgentLog;

import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.annotation.AnnotationSource;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

import java.util.ArrayList;
import java.util.List;

/** Which methods are watched: what {@code include} names, less what {@code exclude} names. */
final class Selection {
    private final List<Pattern> include;
    private final List<Pattern> exclude;
    private final boolean annotations;

    Selection(List<String> include, List<String> exclude, AgentLog log) {
        this.include = parse(include, log);
        this.exclude = parse(exclude, log);
        this.annotations = this.include.stream().anyMatch(Pattern::isAnnotation);
    }

    private static List<Pattern> parse(List<String> texts, AgentLog log) {
        List<Pattern> patterns = new ArrayList<>();
        for (String text : texts) {
            try {
                patterns.add(Pattern.parse(text));
            } catch (IllegalArgumentException e) {
                log.say(e.getMessage() + "; it is left out");
            }
        }
        return patterns;
    }

    boolean isEmpty() {
        return include.isEmpty();
    }

    /**
     * Is it worth looking at the methods of this class? Asked for every class that is loaded, so it
     * begins with the name.
     */
    boolean mayHold(TypeDescription type) {
        String name = type.getName();
        if (annotations
                || include.stream().anyMatch(p -> p.fits(name) || p.mayFitMethodsOf(name))) {
            return !excludes(type);
        }
        return false;
    }

    private boolean excludes(TypeDescription type) {
        return exclude.stream()
                .anyMatch(p -> p.isAnnotation() ? isAnnotated(p, type) : p.fits(type.getName()));
    }

    /** For a method of a class that {@link #mayHold}. */
    boolean holds(TypeDescription type, MethodDescription method) {
        if (!isWatchable(method)) {
            return false;
        }
        String name = type.getName();
        String methodName = method.getInternalName();
        boolean in =
                include.stream()
                        .anyMatch(
                                p ->
                                        p.isAnnotation()
                                                ? isAnnotated(p, type) || isAnnotated(p, method)
                                                : p.fits(name) || p.fits(name, methodName));
        return in
                && exclude.stream()
                        .noneMatch(
                                p ->
                                        p.isAnnotation()
                                                ? isAnnotated(p, method)
                                                : p.fits(name, methodName));
    }

    /**
     * What the compiler made (bridges, bodies of lambdas, accessors) is part of what the person
     * wrote, not a call of its own.
     */
    private static boolean isWatchable(MethodDescription method) {
        return !method.isAbstract()
                && !method.isNative()
                && !method.isSynthetic()
                && !method.isBridge()
                && !method.isTypeInitializer();
    }

    private static boolean isAnnotated(Pattern pattern, AnnotationSource source) {
        for (AnnotationDescription annotation : source.getDeclaredAnnotations()) {
            if (pattern.fits(annotation.getAnnotationType().getName())) {
                return true;
            }
        }
        return false;
    }
}
