package io.tachograph.core.send;

import io.tachograph.core.log.Messages;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SocketChannel;

import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;

/**
 * A non-blocking TLS connection over a non-blocking channel. The agent loads the JDK's classes for
 * TLS only if {@code tls_ca} is set.
 *
 * <p>Before: {@link Link}. After: {@code crates/server/src/tls}.
 */
final class TlsChannel implements ByteChannel {
    private static final ByteBuffer EMPTY = ByteBuffer.allocate(0);

    private final SocketChannel socket;
    private final SSLEngine engine;
    private final TlsCause cause;

    /** Received encrypted bytes. When no method runs, the buffer is in fill mode (not flipped). */
    private ByteBuffer netIn;

    /** Encrypted bytes to send. When no method runs, the buffer is in drain mode (flipped). */
    private ByteBuffer netOut;

    /** Received decrypted bytes. When no method runs, the buffer is in drain mode (flipped). */
    private ByteBuffer plainIn;

    /**
     * @param socket a connected socket
     * @param host the name or address that the server's certificate must contain
     * @throws IOException if a file cannot be used
     */
    TlsChannel(SocketChannel socket, TlsFiles files, String host, int port) throws IOException {
        this.socket = socket;
        this.cause = new TlsCause(host, files.hasCertificate());
        engine = files.context().createSSLEngine(host, port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // checks the host name
        engine.setSSLParameters(parameters);
        int packet = engine.getSession().getPacketBufferSize();
        netIn = ByteBuffer.allocate(packet);
        netOut = ByteBuffer.allocate(packet).flip();
        plainIn = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize()).flip();
        engine.beginHandshake();
    }

    /**
     * Continues the handshake as far as possible without waiting.
     *
     * @return true if the handshake is complete
     */
    boolean handshake() throws IOException {
        try {
            while (true) {
                switch (engine.getHandshakeStatus()) {
                    case NEED_TASK:
                        runTasks();
                        break;
                    case NEED_WRAP:
                        if (!flush()) {
                            return false;
                        }
                        if (wrap(EMPTY) == Status.CLOSED) {
                            throw closed();
                        }
                        break;
                    case NEED_UNWRAP:
                        Status status = unwrap();
                        if (status == Status.CLOSED) {
                            throw closed();
                        }
                        if (status == Status.BUFFER_UNDERFLOW && !fill()) {
                            return false;
                        }
                        break;
                    default:
                        return flush();
                }
            }
        } catch (SSLException e) {
            alert();
            throw cause.of(e);
        }
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
        try {
            while (!plainIn.hasRemaining()) {
                Status status = unwrap();
                if (status == Status.CLOSED) {
                    return -1;
                }
                settle();
                if (status == Status.BUFFER_UNDERFLOW && !fill()) {
                    return 0;
                }
            }
        } catch (EOFException e) {
            return -1;
        } catch (SSLException e) {
            throw cause.of(e);
        }
        int count = Math.min(plainIn.remaining(), target.remaining());
        ByteBuffer part = plainIn.duplicate().limit(plainIn.position() + count);
        target.put(part);
        plainIn.position(plainIn.position() + count);
        return count;
    }

    /** Takes as many bytes as the socket accepts, and at most one TLS record more. */
    @Override
    public int write(ByteBuffer source) throws IOException {
        int before = source.remaining();
        try {
            while (flush() && source.hasRemaining()) {
                if (wrap(source) == Status.CLOSED) {
                    throw closed();
                }
            }
        } catch (SSLException e) {
            throw cause.of(e);
        }
        return before - source.remaining();
    }

    @Override
    public boolean isOpen() {
        return socket.isOpen();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /** Handles messages after the handshake: new keys and session tickets. */
    private void settle() throws IOException {
        HandshakeStatus status = engine.getHandshakeStatus();
        if (status == HandshakeStatus.NEED_TASK) {
            runTasks();
        } else if (status == HandshakeStatus.NEED_WRAP && flush()) {
            wrap(EMPTY);
        }
    }

    private void runTasks() {
        Runnable task;
        while ((task = engine.getDelegatedTask()) != null) {
            task.run();
        }
    }

    /** Tells the server why the handshake has failed, without waiting. */
    private void alert() {
        try {
            while (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && flush()) {
                if (wrap(EMPTY) == Status.CLOSED) {
                    break;
                }
            }
            flush();
        } catch (IOException ignored) {
            // The connection is closed anyway.
        }
    }

    /** Encrypts one TLS record; {@link #netOut} must be empty. */
    private Status wrap(ByteBuffer source) throws SSLException {
        Status status;
        while ((status = engine.wrap(source, netOut.clear()).getStatus())
                == Status.BUFFER_OVERFLOW) {
            netOut = ByteBuffer.allocate(2 * netOut.capacity());
        }
        netOut.flip();
        return status;
    }

    /** Decrypts one TLS record; {@link #plainIn} must be empty. */
    private Status unwrap() throws SSLException {
        netIn.flip();
        Status status;
        try {
            while ((status = engine.unwrap(netIn, plainIn.clear()).getStatus())
                    == Status.BUFFER_OVERFLOW) {
                plainIn = ByteBuffer.allocate(2 * plainIn.capacity());
            }
        } finally {
            netIn.compact();
            plainIn.flip();
        }
        return status;
    }

    /** @return false if nothing has arrived */
    private boolean fill() throws IOException {
        if (!netIn.hasRemaining()) {
            netIn = ByteBuffer.allocate(2 * netIn.capacity()).put(netIn.flip());
        }
        int count = socket.read(netIn);
        if (count < 0) {
            throw closed();
        }
        if (count == 0) {
            flush();
        }
        return count > 0;
    }

    private static EOFException closed() {
        return new EOFException(Messages.SERVER_CLOSED);
    }

    /** @return true if everything is sent */
    private boolean flush() throws IOException {
        if (netOut.hasRemaining()) {
            socket.write(netOut);
        }
        return !netOut.hasRemaining();
    }
}
