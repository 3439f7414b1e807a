package io.tachograph.probes.http;

import net.bytebuddy.matcher.ElementMatcher;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Matches class loaders that can load a given class. Matching inherited types reads the class files
 * of all ancestors, for every class of the program. In a program without servlets, this matcher
 * avoids that cost.
 */
final class Loads extends ElementMatcher.Junction.AbstractBase<ClassLoader> {
    private final String file;
    private final Map<ClassLoader, Boolean> known =
            Collections.synchronizedMap(new WeakHashMap<>());

    Loads(String className) {
        this.file = className.replace('.', '/') + ".class";
    }

    @Override
    public boolean matches(ClassLoader loader) {
        if (loader == null) {
            return false;
        }
        Boolean answer = known.get(loader);
        if (answer == null) {
            answer = loader.getResource(file) != null;
            known.put(loader, answer);
        }
        return answer;
    }
}
