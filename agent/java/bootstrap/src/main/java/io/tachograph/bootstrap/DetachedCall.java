package io.tachograph.bootstrap;

/**
 * A call that begins on one thread and ends on another, such as a request whose answer comes as a
 * promise. It has a buffer of its own, borrowed as by a virtual thread, and is a segment of its
 * own, child of what was open where it began.
 *
 * <p>Threads may take turns with it if each hands over properly (a future does); two at once may
 * not. {@link #exit} or {@link #exitFailed} must follow, the first one counts.
 */
public final class DetachedCall {
    private final Buffers home;
    private final ThreadBuffer buffer;
    private final int call;
    private boolean ended;

    private DetachedCall(Buffers home, ThreadBuffer buffer, int operation) {
        this.home = home;
        this.buffer = buffer;
        this.call = buffer.enter(operation);
    }

    /** A call begins; it is recorded, or left out and counted, as any other. */
    static DetachedCall begin(Buffers home, int operation, Context parent) {
        ThreadBuffer buffer = home.lend(Thread.currentThread());
        buffer.attach(parent);
        return new DetachedCall(home, buffer, operation);
    }

    /** This call, as a parent for others; null if it was left out and has no parent itself. */
    public Context context() {
        return ended ? null : buffer.context();
    }

    public void attribute(String key, String value) {
        if (!ended) {
            buffer.attribute(call, key, value);
        }
    }

    public void attribute(String key, long value) {
        if (!ended) {
            buffer.attribute(call, key, value);
        }
    }

    public void exit() {
        if (!ended) {
            ended = true;
            buffer.exit(call);
            home.takeBack(buffer);
        }
    }

    /**
     * @param thrown may be null when only the failure is known
     */
    public void exitFailed(Throwable thrown) {
        if (!ended) {
            ended = true;
            buffer.exitFailed(call, thrown);
            home.takeBack(buffer);
        }
    }
}
