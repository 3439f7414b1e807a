package io.tachograph.bootstrap;

/**
 * The API of probes for calls of the current thread. All methods are static, so advice needs no
 * object to call them. No method does I/O. A method throws only if stack or memory runs out. A
 * method takes a lock only for something new, such as a name. It waits for space only under the
 * policy {@code block}.
 *
 * <pre>{@code
 * int call = Recorder.enter(operation);        // operation: an id from Recorder.operation(kind, name)
 * Recorder.attribute(call, "http.status", 200);
 * Recorder.exit(call);                         // or exitFailed(call, thrown)
 * }</pre>
 *
 * The token that {@code enter} returns is valid only on the same thread. Every {@code enter} needs
 * an exit on the same thread, or a {@link #leave} that returns true. The exit of a caller adds
 * missing exits, as failed.
 *
 * <p>Before: the advice of a probe. After: {@link ThreadBuffer}.
 */
public final class Recorder {
    // Set once by `start`, before the first class is instrumented. `Started` copies it into a final
    // field.
    private static volatile Buffers starting;

    private Recorder() {}

    /** The JIT compiler treats a static final field as a constant. */
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

    /** True after {@link #start}: an agent records in this process. */
    public static boolean isStarted() {
        return starting != null;
    }

    /**
     * Returns the id of an operation; see {@link Operations#id}. Does not allocate for a known
     * name.
     */
    public static int operation(int kind, String name) {
        return Operations.shared().id(kind, name);
    }

    /** Never null. Advice that keeps the buffer needs no second look-up at the exit. */
    public static ThreadBuffer buffer() {
        return Started.BUFFERS.current();
    }

    /** @return the token of the call */
    public static int enter(int operation) {
        return buffer().enter(operation);
    }

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
     * Adds a text attribute. Ignored if the call is not the innermost open one. The text is cut to
     * 4,096 bytes when it is sent.
     */
    public static void attribute(int call, String key, String value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /** Adds a numeric attribute. Ignored if the call is not the innermost open one. */
    public static void attribute(int call, String key, long value) {
        if (call > 0) {
            buffer().attribute(call, key, value);
        }
    }

    /**
     * Changes the operation of an open call of this thread, for example when the route of a request
     * becomes known.
     */
    public static void rename(int call, int operation) {
        if (call > 0) {
            buffer().rename(call, operation);
        }
    }

    /**
     * Returns a handle for the outermost call of this thread, which may end on another thread; see
     * {@link #leave}.
     */
    public static HandedCall handed() {
        return new HandedCall(Started.BUFFERS);
    }

    /**
     * Lets this thread leave its outermost call. The call stays open until {@link HandedCall#end}.
     *
     * @param call the token of the call
     * @return false if this thread must end the call, because the call is not recorded, is not the
     *     only open one, or has ended already, or because the ring has no space
     */
    public static boolean leave(int call, HandedCall handed) {
        handed.known(context());
        return call > 0 && buffer().leave(call, handed);
    }

    /**
     * Begins a call that may end on another thread, such as a request whose answer is a promise.
     * The call is a child of {@link #context}. Its attribute is recorded even if {@link
     * HandedCall#end} is never called.
     */
    public static HandedCall begin(int operation, String key, String value) {
        return HandedCall.begin(Started.BUFFERS, operation, context(), key, value);
    }

    /**
     * The innermost recorded open call of this thread, as a parent for another thread or process.
     * If there is none: inside a trace that is not recorded, the context of this trace; otherwise
     * the parent of the thread's next outermost call, or null. A thread without a buffer does not
     * get a buffer.
     */
    public static Context context() {
        return Started.BUFFERS.context();
    }

    /**
     * Makes {@code context} the parent of this thread's outermost calls until {@link #detach}. The
     * thread needs a buffer only if it records an outermost call.
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
     * Begins the call of a constructor, after {@code super(...)}. The byte code of a constructor
     * cannot keep a token.
     */
    public static void constructorEnter(int operation) {
        try {
            buffer().enter(operation);
        } catch (Throwable e) {
            // Stack overflow: the call is not recorded. The error is caught here, because the
            // handler that the agent adds to the constructor would throw it into the program. As
            // in the handlers of advice, no method is called.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    /** As {@link #constructorEnter}, for a call that is counted instead of recorded. */
    public static void constructorEnterCounted(int operation) {
        try {
            buffer().enterCounted(operation);
        } catch (Throwable e) {
            // As in constructorEnter.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    public static void constructorExitCounted(int operation) {
        constructorEndCounted(operation, false);
    }

    public static void constructorFailedCounted(Throwable thrown, int operation) {
        constructorEndCounted(operation, true);
    }

    private static void constructorEndCounted(int operation, boolean failed) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exitCounted(buffer.innermostCounted(operation), failed);
        } catch (Throwable e) {
            // As in constructorEnter.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    public static void constructorExit(int operation) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exit(buffer.innermost(operation));
        } catch (Throwable e) {
            // Stack overflow: the exit of the caller adds the missing exit.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }

    public static void constructorFailed(Throwable thrown, int operation) {
        try {
            ThreadBuffer buffer = buffer();
            buffer.exitFailed(buffer.innermost(operation), thrown);
        } catch (Throwable e) {
            // As in constructorExit.
            AdviceFaults.LATEST[AdviceFaults.CONSTRUCTORS] = e;
            AdviceFaults.COUNTS[AdviceFaults.CONSTRUCTORS]++;
        }
    }
}
