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
    private final AgentLog log;

    Visibility(AgentLog log) {
        this.log = log;
    }

    boolean of(ClassLoader loader) {
        if (loader == null) {
            return true;
        }
        Boolean sees = known.get(loader);
        if (sees == null) {
            known.put(loader, true); // what the loader loads meanwhile comes here too
            sees = look(loader);
            known.put(loader, sees);
        }
        return sees;
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
