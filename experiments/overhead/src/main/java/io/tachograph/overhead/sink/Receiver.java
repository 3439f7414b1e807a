package io.tachograph.overhead.sink;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/**
 * The server side of one protocol. Counts and discards the received calls, and sends the answers
 * that the sender needs to continue.
 */
interface Receiver {
    /**
     * Serves one connection until the sender closes it.
     *
     * @throws IOException if the connection breaks; protocols without HTTP also end with an {@link
     *     java.io.EOFException} when the sender closes the connection
     * @throws MalformedException if the bytes cannot be decoded; later bytes cannot be counted
     */
    void serve(InputStream in, OutputStream out, Tally tally) throws IOException;

    /** Bytes that violate the protocol. */
    final class MalformedException extends IOException {
        MalformedException(String message) {
            super(message);
        }
    }
}
