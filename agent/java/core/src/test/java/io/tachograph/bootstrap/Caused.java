package io.tachograph.bootstrap;

/**
 * Begins outermost calls with a given parent, in a given buffer. Probes always use the buffer of
 * the calling thread.
 */
public final class Caused {
    private Caused() {}

    /**
     * @param cause the parent; null if there is none
     * @return the token of the call
     */
    public static int enter(ThreadBuffer buffer, int operation, Context cause) {
        Context before = buffer.attach(cause);
        int token = buffer.enter(operation);
        buffer.attach(before);
        return token;
    }
}
