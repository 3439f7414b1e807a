package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Recorder;
import io.tachograph.core.log.AgentLog;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Tests whether a class loader finds the agent's classes to which inlined code refers. Some loaders
 * delegate only {@code java.*} to the bootstrap loader (OSGi by default). An instrumented method in
 * a class of such a loader would throw {@code NoClassDefFoundError} in the program.
 */
final class Visibility {
    private final Map<ClassLoader, Boolean> known =
            Collections.synchronizedMap(new WeakHashMap<>());

    /**
     * Set while this thread tests a loader. The test may load classes. Such a class is not changed
     * if its own loader is not tested yet.
     */
    private final ThreadLocal<Boolean> asking = new ThreadLocal<>();

    private final AgentLog log;

    Visibility(AgentLog log) {
        this.log = log;
    }

    boolean of(ClassLoader loader) {
        if (loader == null) {
            return true;
        }
        Boolean sees = known.get(loader);
        return sees != null ? sees : asking.get() == null && ask(loader);
    }

    /**
     * If several threads see a new loader at the same time, each of them tests it, because no
     * thread may assume a result.
     */
    private boolean ask(ClassLoader loader) {
        asking.set(true);
        try {
            boolean sees = look(loader);
            known.put(loader, sees);
            return sees;
        } finally {
            asking.remove();
        }
    }

    private boolean look(ClassLoader loader) {
        try {
            return loader.loadClass(Recorder.class.getName()) == Recorder.class;
        } catch (ClassNotFoundException | RuntimeException | LinkageError e) {
            log.sayOnce(
                    "loader " + loader.getClass(),
                    "classes of "
                            + loader.getClass().getName()
                            + " cannot be instrumented: the loader does not delegate "
                            + Recorder.class.getPackageName());
            return false;
        }
    }
}
