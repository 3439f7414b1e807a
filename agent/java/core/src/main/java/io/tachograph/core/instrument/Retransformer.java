package io.tachograph.core.instrument;

import io.tachograph.core.log.AgentLog;

import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;

import java.lang.instrument.Instrumentation;
import java.util.IdentityHashMap;
import java.util.Map;

/**
 * Finds the loaded classes whose byte code does not match the current rules, and retransforms them.
 * Each retransformation begins with the byte code of the class file, so that the advice of earlier
 * rules disappears.
 */
final class Retransformer {
    /**
     * Number of classes in a batch. Each batch stops the program for a few ms, plus about 0.1 ms
     * per class.
     */
    private static final int BATCH = 64;

    private final Instrumentation instrumentation;
    private final Scope scope;
    private final Selection selection;
    private final WatchedClasses watched;
    private final AgentLog log;

    Retransformer(
            Instrumentation instrumentation,
            Scope scope,
            Selection selection,
            WatchedClasses watched,
            AgentLog log) {
        this.instrumentation = instrumentation;
        this.scope = scope;
        this.selection = selection;
        this.watched = watched;
        this.log = log;
    }

    /**
     * @return number of changed classes
     */
    int bringUpToDate() {
        RuleList list = selection.list();
        Map<ClassLoader, TypePool> pools = new IdentityHashMap<>();
        Map<Class<?>, Decision> batch = new IdentityHashMap<>();
        int changed = 0;
        for (Class<?> type : instrumentation.getAllLoadedClasses()) {
            if (isOutOfDate(type, list, pools)) {
                batch.put(type, watched.get(type.getClassLoader(), type.getName()));
            }
            if (batch.size() == BATCH) {
                changed += retransform(batch);
                batch.clear();
            }
        }
        return changed + retransform(batch);
    }

    private boolean isOutOfDate(Class<?> type, RuleList list, Map<ClassLoader, TypePool> pools) {
        String name = type.getName();
        ClassLoader loader = type.getClassLoader();
        if (type.isArray() || type.isPrimitive() || isHidden(name) || Scope.isJdk(name)) {
            return false;
        }
        Decision before = watched.get(loader, name);
        if (before != null ? before.epoch == list.epoch : !list.mayConcern(name)) {
            return false;
        }
        if (!scope.holds(name, loader) || watched.isUnchangeable(loader, name)) {
            return false;
        }
        Decision now = decide(type, list, pools);
        if (now == null) {
            return false;
        }
        boolean same = before == null ? now.watchesNothing() : now.watchesTheSameAs(before);
        if (same) {
            watched.put(loader, name, now);
        } else if (!instrumentation.isModifiableClass(type)) {
            giveUp(type, before, "the JVM does not allow it");
            return false;
        }
        return !same;
    }

    /**
     * Decides from the class file if there is one. Reflection on the class would load other
     * classes.
     */
    private Decision decide(Class<?> type, RuleList list, Map<ClassLoader, TypePool> pools) {
        try {
            TypePool.Resolution found =
                    pools.computeIfAbsent(type.getClassLoader(), Retransformer::pool)
                            .describe(type.getName());
            return Decision.of(
                    list,
                    found.isResolved()
                            ? found.resolve()
                            : TypeDescription.ForLoadedType.of(type)); // generated at run time
        } catch (RuntimeException | LinkageError e) {
            giveUp(type, watched.get(type.getClassLoader(), type.getName()), e);
            return null;
        }
    }

    private static TypePool pool(ClassLoader loader) {
        return TypePool.Default.WithLazyResolution.of(ClassFileLocator.ForClassLoader.of(loader));
    }

    /**
     * @param types classes with their last decisions, which may be null
     * @return number of changed classes
     */
    private int retransform(Map<Class<?>, Decision> types) {
        if (types.isEmpty()) {
            return 0;
        }
        try {
            instrumentation.retransformClasses(types.keySet().toArray(new Class<?>[0]));
            return types.size();
        } catch (Exception | LinkageError | InternalError e) {
            int changed = 0;
            for (Map.Entry<Class<?>, Decision> entry : types.entrySet()) {
                if (types.size() == 1) {
                    giveUp(entry.getKey(), entry.getValue(), e);
                } else {
                    Map<Class<?>, Decision> alone = new IdentityHashMap<>();
                    alone.put(entry.getKey(), entry.getValue());
                    changed += retransform(alone);
                }
            }
            return changed;
        }
    }

    /** Hidden classes, such as lambdas, have no usable name and cannot be retransformed. */
    private static boolean isHidden(String name) {
        return name.indexOf('/') >= 0;
    }

    private void giveUp(Class<?> type, Decision asItIs, Object why) {
        watched.giveUp(type.getClassLoader(), type.getName(), asItIs, why);
        log.sayOnce("class " + type.getName(), "cannot change " + type.getName() + ": " + why);
    }
}
