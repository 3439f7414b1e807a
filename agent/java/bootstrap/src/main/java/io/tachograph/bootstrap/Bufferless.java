package io.tachograph.bootstrap;

/**
 * What is known of a thread that has no buffer: one that has recorded nothing, a virtual one
 * between its outermost calls, or one for which there was no room. Made when there is something to
 * know, and kept for as long as the thread lives, so that no call allocates it again. Only its own
 * thread looks at it.
 */
final class Bufferless {
    private Context attached;
    private boolean isAttached;

    /** Calls that are open and left out, because there is no buffer for them. */
    int leftOut;

    /** It was looked for a buffer of the thread's, and it has none. */
    boolean hasNone;

    /** What causes the calls of {@code thread} that have no caller; null for nobody. */
    Context cause(Thread thread) {
        return isAttached ? attached : Inheritance.of(thread);
    }

    void attach(Context context) {
        attached = context;
        isAttached = true;
    }

    /** Its thread got a buffer for life, which knows all that from now on. */
    void forget() {
        attached = null;
        isAttached = false;
        hasNone = false;
    }
}
