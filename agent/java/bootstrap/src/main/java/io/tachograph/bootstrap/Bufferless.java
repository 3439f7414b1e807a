package io.tachograph.bootstrap;

/**
 * State of a thread without a buffer: one that has not recorded a call, a virtual thread between
 * its outermost calls, or one for which no buffer was free. Created on first use and kept for the
 * life of the thread, so that no call allocates it again. Only its own thread accesses it.
 */
final class Bufferless {
    private Context attached;
    private boolean isAttached;

    /** Open calls that are dropped because the thread has no buffer. */
    int leftOut;

    /** The thread was looked up and has no buffer. */
    boolean hasNone;

    /** The parent of the outermost calls of {@code thread}; null if there is none. */
    Context cause(Thread thread) {
        return isAttached ? attached : Inheritance.of(thread);
    }

    void attach(Context context) {
        attached = context;
        isAttached = true;
    }

    /** Clears the state: the thread now has a permanent buffer, which holds it. */
    void forget() {
        attached = null;
        isAttached = false;
        hasNone = false;
    }
}
