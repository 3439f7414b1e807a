package io.tachograph.probes;

import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.pool.TypePool;

import java.util.HashSet;
import java.util.Set;

/**
 * Matches the given types and all classes that inherit from them. The search ends without an
 * exception at an ancestor that has no class file, because it was generated at run time (for
 * example by another agent).
 */
public final class Inherits extends ElementMatcher.Junction.AbstractBase<TypeDescription> {
    private final Set<String> names;

    /** @param names full names of the types */
    public Inherits(String... names) {
        this.names = Set.of(names);
    }

    @Override
    public boolean matches(TypeDescription type) {
        return type != null && isOrInherits(type, new HashSet<>());
    }

    private boolean isOrInherits(TypeDescription type, Set<String> seen) {
        if (names.contains(type.getName())) {
            return true;
        }
        if (!seen.add(type.getName())) {
            return false;
        }
        try {
            if (inherits(type.getSuperClass(), seen)) {
                return true;
            }
            for (TypeDescription.Generic each : type.getInterfaces()) {
                if (inherits(each, seen)) {
                    return true;
                }
            }
        } catch (TypePool.Resolution.NoSuchTypeException e) {
            // The ancestor has no class file, so its ancestors are unknown.
        }
        return false;
    }

    private boolean inherits(TypeDescription.Generic ancestor, Set<String> seen) {
        try {
            return ancestor != null && isOrInherits(ancestor.asErasure(), seen);
        } catch (TypePool.Resolution.NoSuchTypeException e) {
            return false;
        }
    }
}
