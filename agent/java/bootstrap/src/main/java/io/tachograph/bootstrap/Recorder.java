package io.tachograph.bootstrap;

/**
 * What a probe says about the calls of the current thread. All methods are static, so that inlined
 * advice needs nothing but a constant, and none of them throws, blocks (but for the policy {@code
 * block}), locks or does I/O.
 *
 * <pre>{@code
 * int call = Recorder.enter(operation);        // operation: an id from Recorder.operation(kind, name)
 * Recorder.attribute(call, "http.status", 200);
 * Recorder.exit(call);                         // or exitFailed(call, thrown)
 * }</pre>
 *
 * A token belongs to the thread that got it. Every {@code enter} needs its exit on the same thread;
 * a missing one is made up for, as failed, when a caller of it exits.
 *
 * <p>Before: the advice of a probe. After: {@link ThreadBuffer}.
 */
public final class Recorder {
    // Replaced once, before the first class is instrumented; read by inlined advice, hence not
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
     * Fixes sizes and policy. Only the first call counts, and only before anything was recorded.
     */
    public static synchronized Buffers start(Buffers.Options options) {
        if (starting == null) {
            starting = new Buffers(Session.shared(), options);
        }
        return Started.BUFFERS;
    }

    /** An agent records here: {@link #start} was called. */
    public static boolean isStarted() {
        return starting != null;
    }

    /**
     * The id of an operation; see {@link Operations#id}. Does not allocate for a name that is
     * known.
     */
    public static int operation(int kind, String name) {
        return Operations.shared().id(kind, name);
    }

    /**
     * The calling thread's buffer: advice that keeps it saves the look-up at the exit. Never null.
     */
    public static ThreadBuffer buffer() {
        return Started.BUFFERS.current();
    }

    /** A call begins. @return its token */
    public static int enter(int operation) {
        return buffer().enter(operation);
    }

    /** A call returned. */
    public static void exit(int call) {
        if (call != 0) {
            buffer().exit(call);
        }
    }

    /** A call ended with an exception. @param thrown may be null */
    public static void exitFailed(int call, Throwable thrown) {
        if (call != 0) {
            buffer().exitFailed(call, thrown);
        }
    }

    /**
     * A fact about a call; ignored unless it is the innermost open one. Cut to 4,096 bytes when it
     * is sent.
     */
    public static void attribute(int call, String key, String value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /** A number about a call; ignored unless it is the innermost open one. */
    public static void attribute(int call, String key, long value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /**
     * An open call of this thread turned out to be one of another operation: the route of a request
     * is known when it was matched.
     */
    public static void rename(int call, int operation) {
        if (call > 0) {
            buffer().rename(call, operation);
        }
    }

    /** For an outermost call of this thread that may end elsewhere; see {@link #leave}. */
    public static HandedCall handed() {
        return new HandedCall(Started.BUFFERS);
    }

    /**
     * This thread leaves its outermost call, which goes on until {@link HandedCall#end}.
     *
     * @param call its token
     * @return false if this thread must end it: it is left out, or not the outermost one, or it has
     *     ended already
     */
    public static boolean leave(int call, HandedCall handed) {
        handed.known(context());
        return call > 0 && buffer().leave(call, handed);
    }

    /**
     * A call begins that may end on another thread, such as a request whose answer comes as a
     * promise; child of the innermost call that is open here. Its fact is known in any case, also
     * if {@link HandedCall#end} never comes.
     */
    public static HandedCall begin(int operation, String key, String value) {
        return HandedCall.begin(Started.BUFFERS, operation, context(), key, value);
    }

    /**
     * The innermost open call, to be handed to another thread or process; null when none is open.
     * A thread that has no buffer gets none.
     */
    public static Context context() {
        return Started.BUFFERS.context();
    }

    /**
     * The calls of this thread that have no caller were caused by {@code context} from now on,
     * until {@link #detach}. A thread that records none of them needs no buffer.
     *
     * @param context null: by nobody
     * @return what to hand to {@link #detach}
     */
    public static Context attach(Context context) {
        return Started.BUFFERS.attach(context);
    }

    /** Ends {@link #attach}, on the same thread. @param before what {@code attach} answered */
    public static void detach(Context before) {
        Started.BUFFERS.attach(before);
    }

    /**
     * A constructor's own code begins (after {@code super(...)}): its byte code has no place for a
     * token.
     */
    public static void constructorEnter(int operation) {
        try {
            buffer().enter(operation);
        } catch (Throwable e) {
            // Out of stack: the call is not recorded. Here, since code added to a constructor
            // cannot catch it. Nothing is called, as in the handlers of advice.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** As {@link #constructorEnter}, for a call that is counted. */
    public static void constructorEnterCounted(int operation) {
        try {
            buffer().enterCounted(operation);
        } catch (Throwable e) {
            // As above.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** A constructor whose calls are counted returned. */
    public static void constructorExitCounted(int operation) {
        constructorEndCounted(operation, false);
    }

    /** The code of a constructor whose calls are counted threw. */
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
            // Out of stack: the caller's exit makes up for it.
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
