package io.tachograph.api;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MutableCallSite;

/**
 * Tells whether an agent is loaded; generated code checks this before each record. The JIT compiler
 * treats the answer as a constant, so a record costs nothing without an agent. The answer changes
 * at most once, when an agent is attached to a running program.
 */
public final class Records {
    private static final String RECORDER = "io.tachograph.bootstrap.Recorder";
    private static final MutableCallSite SITE = new MutableCallSite(constant(isAgentThere()));
    private static final MethodHandle ON = SITE.dynamicInvoker();

    private Records() {}

    public static boolean on() {
        try {
            return (boolean) ON.invokeExact();
        } catch (Throwable e) {
            return false; // stack overflow
        }
    }

    /** Called by an agent if this class is already loaded when the agent starts. */
    public static void attached() {
        if (isAgentThere()) {
            SITE.setTarget(constant(true));
            MutableCallSite.syncAll(new MutableCallSite[] {SITE});
        }
    }

    private static MethodHandle constant(boolean on) {
        return MethodHandles.constant(boolean.class, on);
    }

    /**
     * Looks up the agent by name, because the agent may be attached later. If the JVM once fails to
     * resolve a reference in byte code, it never resolves that reference.
     */
    private static boolean isAgentThere() {
        try {
            Class<?> recorder = Class.forName(RECORDER, true, Records.class.getClassLoader());
            return (boolean) recorder.getMethod("isStarted").invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            return false; // no agent, or a version without declared records
        }
    }
}
