package io.tachograph.api;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MutableCallSite;

/**
 * Is there an agent? Generated code asks before each record. The answer is a constant to the JIT
 * compiler, so that a record costs nothing where there is none, and it changes once, when an agent
 * is attached to a program that runs.
 */
public final class Records {
    private static final String RECORDER = "io.tachograph.bootstrap.Recorder";
    private static final MutableCallSite SITE = new MutableCallSite(constant(isAgentThere()));
    private static final MethodHandle ON = SITE.dynamicInvoker();

    private Records() {}

    /** Records are kept. */
    public static boolean on() {
        try {
            return (boolean) ON.invokeExact();
        } catch (Throwable e) {
            return false; // out of stack
        }
    }

    /** The agent has come after this class was loaded. To be called by the agent. */
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
     * By name: a reference in byte code that could not be resolved once never can, and the agent
     * may come later.
     */
    private static boolean isAgentThere() {
        try {
            Class<?> recorder = Class.forName(RECORDER, true, Records.class.getClassLoader());
            return (boolean) recorder.getMethod("isStarted").invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            return false; // no agent, or one that knows no records
        }
    }
}
