package io.tachograph.overhead.sink;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/**
 * What a sender believes to speak with: counts the calls that arrive, throws them away, and says
 * what the sender needs to hear to go on. One protocol is one class.
 */
interface Receiver {
    /**
     * One connection, until the sender ends it.
     *
     * @throws IOException if the connection breaks
     * @throws MalformedException if what arrives cannot be read: nothing after it can be counted
     */
    void serve(InputStream in, OutputStream out, Tally tally) throws IOException;

    /** Bytes that are not what the protocol says. */
    final class MalformedException extends IOException {
        MalformedException(String message) {
            super(message);
        }
    }
}
