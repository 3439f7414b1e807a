package io.tachograph.bootstrap;

/**
 * State of a thread without a buffer: a thread that has not recorded a call, a virtual thread
 * between its outermost calls, or a thread for which no buffer was free. The object is created on
 * first use and kept for the life of the thread, so that later calls do not allocate. Only this
 * thread accesses the object.
 */
final class Bufferless {
    private Context attached;
    private boolean isAttached;

    /** Number of open calls that are dropped because the thread has no buffer. */
    int openDropped;

    /** True if no buffer was free when the thread needed one. */
    boolean hasNone;

    /** The parent of the outermost calls of {@code thread}; null if there is none. */
    Context cause(Thread thread) {
        return isAttached ? attached : Inheritance.of(thread);
    }

    void attach(Context context) {
        attached = context;
        isAttached = true;
    }

    /** Called when the thread has got a permanent buffer, which keeps the context. */
    void forget() {
        attached = null;
        isAttached = false;
        hasNone = false;
    }
}
