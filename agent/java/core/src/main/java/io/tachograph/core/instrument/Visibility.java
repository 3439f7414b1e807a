package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Recorder;
import io.tachograph.core.log.AgentLog;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Can the classes of a loader see what is put into them? Loaders that ask the bootstrap loader only
 * for {@code java.*} exist (OSGi, by default); a class changed there would fail with {@code
 * NoClassDefFoundError} in the middle of the program.
 */
final class Visibility {
    private final Map<ClassLoader, Boolean> known =
            Collections.synchronizedMap(new WeakHashMap<>());

    /** Set while this thread asks a loader: what is loaded for the answer is left alone. */
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
     * Threads that meet at a new loader ask it each: none may take it for one that sees before that
     * is known.
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
                            + " cannot be watched: it does not ask the bootstrap loader for "
                            + Recorder.class.getPackageName());
            return false;
        }
    }
}
