package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Recorder;
import io.tachograph.core.log.AgentLog;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Whether the classes of a loader can see the inlined code. Some loaders delegate only {@code
 * java.*} to the bootstrap loader (OSGi by default); a class changed there would throw {@code
 * NoClassDefFoundError} in the middle of the program.
 */
final class Visibility {
    private final Map<ClassLoader, Boolean> known =
            Collections.synchronizedMap(new WeakHashMap<>());

    /** Set while this thread probes a loader: classes loaded by the probing are not changed. */
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
     * Threads that meet at a new loader probe it each: none may assume an answer before it is
     * known.
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
