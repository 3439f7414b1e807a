package io.tachograph.bootstrap;

/** Outermost calls with a parent, on any buffer; probes use the buffer of the calling thread. */
public final class Caused {
    private Caused() {}

    /**
     * @param cause null for none
     * @return the call's token
     */
    public static int enter(ThreadBuffer buffer, int operation, Context cause) {
        Context before = buffer.attach(cause);
        int token = buffer.enter(operation);
        buffer.attach(before);
        return token;
    }
}
