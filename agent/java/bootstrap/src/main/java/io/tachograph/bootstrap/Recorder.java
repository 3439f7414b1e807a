package io.tachograph.bootstrap;

/**
 * The API of probes for calls of the current thread. All methods are static, so that inlined advice
 * needs only a constant. None of them throws, locks or does I/O, and only the policy {@code block}
 * waits.
 *
 * <pre>{@code
 * int call = Recorder.enter(operation);        // operation: an id from Recorder.operation(kind, name)
 * Recorder.attribute(call, "http.status", 200);
 * Recorder.exit(call);                         // or exitFailed(call, thrown)
 * }</pre>
 *
 * A token belongs to the thread that got it. Every {@code enter} needs its exit on the same thread;
 * a missing exit is added, as failed, when one of its callers exits.
 *
 * <p>Before: the advice of a probe. After: {@link ThreadBuffer}.
 */
public final class Recorder {
    // Replaced once, before the first class is instrumented. Inlined advice reads it, so it is not
    // behind a method call.
    private static volatile Buffers starting;

    private Recorder() {}

    /** Holds the buffers in a final field, which the JIT compiler treats as a constant. */
    private static final class Started {
        static final Buffers BUFFERS = started();

        private static Buffers started() {
            Buffers given = starting;
            return given != null ? given : new Buffers(Session.shared(), new Buffers.Options());
        }
    }

    /**
     * Sets sizes and policy. Only the first call has an effect, and only before the first record.
     */
    public static synchronized Buffers start(Buffers.Options options) {
        if (starting == null) {
            starting = new Buffers(Session.shared(), options);
        }
        return Started.BUFFERS;
    }

    /** True once {@link #start} was called: an agent records here. */
    public static boolean isStarted() {
        return starting != null;
    }

    /**
     * The id of an operation; see {@link Operations#id}. Does not allocate for a known name.
     */
    public static int operation(int kind, String name) {
        return Operations.shared().id(kind, name);
    }

    /**
     * The calling thread's buffer; never null. Advice that keeps it saves the look-up at the exit.
     */
    public static ThreadBuffer buffer() {
        return Started.BUFFERS.current();
    }

    /** Begins a call. @return its token */
    public static int enter(int operation) {
        return buffer().enter(operation);
    }

    /** Ends a call that returned. */
    public static void exit(int call) {
        if (call != 0) {
            buffer().exit(call);
        }
    }

    /** Ends a call that threw. @param thrown may be null */
    public static void exitFailed(int call, Throwable thrown) {
        if (call != 0) {
            buffer().exitFailed(call, thrown);
        }
    }

    /**
     * Adds a text attribute; ignored unless the call is the innermost open one. Cut to 4,096 bytes
     * when it is sent.
     */
    public static void attribute(int call, String key, String value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /** Adds a numeric attribute; ignored unless the call is the innermost open one. */
    public static void attribute(int call, String key, long value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /**
     * Changes the operation of an open call of this thread: the route of a request is known only
     * after matching.
     */
    public static void rename(int call, int operation) {
        if (call > 0) {
            buffer().rename(call, operation);
        }
    }

    /**
     * A handle for the outermost call of this thread, which may end elsewhere; see {@link #leave}.
     */
    public static HandedCall handed() {
        return new HandedCall(Started.BUFFERS);
    }

    /**
     * This thread leaves its outermost call, which stays open until {@link HandedCall#end}.
     *
     * @param call its token
     * @return false if this thread must end it: it is not recorded, or not the outermost one, or has
     *     ended already
     */
    public static boolean leave(int call, HandedCall handed) {
        handed.known(context());
        return call > 0 && buffer().leave(call, handed);
    }

    /**
     * Begins a call that may end on another thread, such as a request whose answer is a promise;
     * child of the innermost call that is open here. Its attribute is recorded even if {@link
     * HandedCall#end} is never called.
     */
    public static HandedCall begin(int operation, String key, String value) {
        return HandedCall.begin(Started.BUFFERS, operation, context(), key, value);
    }

    /**
     * The innermost open call, as a parent for another thread or process; null if none is open.
     * Assigns no buffer to a thread without one.
     */
    public static Context context() {
        return Started.BUFFERS.context();
    }

    /**
     * Makes {@code context} the parent of this thread's outermost calls until {@link #detach}. A
     * thread that records none of them needs no buffer.
     *
     * @param context null: no parent
     * @return the value for {@link #detach}
     */
    public static Context attach(Context context) {
        return Started.BUFFERS.attach(context);
    }

    /** Ends {@link #attach}, on the same thread. @param before the result of {@code attach} */
    public static void detach(Context before) {
        Started.BUFFERS.attach(before);
    }

    /**
     * Begins a constructor's own code (after {@code super(...)}): its byte code has no place for a
     * token.
     */
    public static void constructorEnter(int operation) {
        try {
            buffer().enter(operation);
        } catch (Throwable e) {
            // Stack overflow: the call is not recorded. Caught here, since code added to a
            // constructor cannot catch it. Nothing is called, as in the handlers of advice.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** As {@link #constructorEnter}, for a counted call. */
    public static void constructorEnterCounted(int operation) {
        try {
            buffer().enterCounted(operation);
        } catch (Throwable e) {
            // As above.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** A counted constructor returned. */
    public static void constructorExitCounted(int operation) {
        constructorEndCounted(operation, false);
    }

    /** The code of a counted constructor threw. */
    public static void constructorFailedCounted(Throwable thrown, int operation) {
        constructorEndCounted(operation, true);
    }

    private static void constructorEndCounted(int operation, boolean failed) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exitCounted(buffer.innermostCounted(operation), failed);
        } catch (Throwable e) {
            // As above.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** A constructor returned. */
    public static void constructorExit(int operation) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exit(buffer.innermost(operation));
        } catch (Throwable e) {
            // Stack overflow: the caller's exit adds the missing one.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** A constructor's own code threw. */
    public static void constructorFailed(Throwable thrown, int operation) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exitFailed(buffer.innermost(operation), thrown);
        } catch (Throwable e) {
            // As above.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }
}
