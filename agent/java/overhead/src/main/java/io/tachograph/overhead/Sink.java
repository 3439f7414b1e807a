package io.tachograph.overhead;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32C;

/**
 * The cheapest possible receiver: counts bytes, throws them away and says what the sender needs to
 * hear to go on.
 */
abstract class Sink implements AutoCloseable {
    private static final int BUFFER_BYTES = 1 << 18;
    // Frame types of the native protocol.
    private static final int HEADER_BYTES = 12;
    private static final int HELLO = 1;
    private static final int DATA = 3;
    private static final int PING = 4;
    private static final int WELCOME = 65;
    private static final int ACK = 66;
    private static final int PONG = 68;

    private final ServerSocket listener;
    private final Thread thread;
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong dropped = new AtomicLong();

    private Sink(String name) throws IOException {
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        thread = new Thread(this::acceptAll, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** For senders that want no answer, such as Kieker's. */
    static Sink silent() throws IOException {
        return new Sink("silent sink") {
            @Override
            void serve(Socket socket) throws IOException {
                byte[] buffer = new byte[BUFFER_BYTES];
                InputStream in = socket.getInputStream();
                for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                    count(n);
                }
            }
        };
    }

    /**
     * For the native record protocol: acknowledges every frame at once ({@code
     * docs/format/wire.md}).
     */
    static Sink acknowledging() throws IOException {
        return new Sink("acknowledging sink") {
            @Override
            void serve(Socket socket) throws IOException {
                acknowledge(this, socket);
            }
        };
    }

    int port() {
        return listener.getLocalPort();
    }

    /**
     * Bytes since the start; a sender's last ones are there when its process has ended and {@link
     * #close} was called.
     */
    long bytes() {
        return bytes.get();
    }

    /** Calls that the sender says it left out; only senders of the native protocol say it. */
    long dropped() {
        return dropped.get();
    }

    void count(long n) {
        bytes.addAndGet(n);
    }

    abstract void serve(Socket socket) throws IOException;

    @Override
    public void close() throws IOException {
        listener.close();
        try {
            thread.join(5_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void acceptAll() {
        while (!listener.isClosed()) {
            try (Socket socket = listener.accept()) {
                socket.setTcpNoDelay(true);
                serve(socket);
            } catch (EOFException | SocketException e) {
                // The sender has gone, perhaps without reading our last answers; the next one may
                // come.
            } catch (IOException e) {
                if (!listener.isClosed()) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }

    private static void acknowledge(Sink sink, Socket socket) throws IOException {
        DataInputStream in =
                new DataInputStream(new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES));
        OutputStream out = socket.getOutputStream();
        byte[] header = new byte[HEADER_BYTES];
        while (true) {
            in.readFully(header);
            byte[] body =
                    in.readNBytes(ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt());
            sink.count(HEADER_BYTES + body.length);
            int type = header[4];
            if (type == HELLO) {
                ByteBuffer welcome =
                        ByteBuffer.allocate(32)
                                .order(ByteOrder.LITTLE_ENDIAN)
                                .put((byte) 1)
                                .put((byte) 0);
                out.write(frame(WELCOME, varint(varint(welcome, 4_194_304), 5_000)));
            } else if (type == DATA) {
                out.write(frame(ACK, varint(ByteBuffer.allocate(10), readVarint(body))));
            } else if (type == PING) {
                sink.dropped.set(readVarint(body));
                out.write(
                        frame(
                                PONG,
                                ByteBuffer.allocate(8)
                                        .order(ByteOrder.LITTLE_ENDIAN)
                                        .putLong(System.currentTimeMillis() * 1_000_000)));
            }
        }
    }

    private static byte[] frame(int type, ByteBuffer filled) {
        int length = filled.position();
        ByteBuffer frame =
                ByteBuffer.allocate(HEADER_BYTES + length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(length).put((byte) type).put((byte) 0).putShort((short) 0);
        CRC32C sum = new CRC32C();
        sum.update(frame.array(), 0, 8);
        sum.update(filled.array(), 0, length);
        return frame.putInt((int) sum.getValue()).put(filled.array(), 0, length).array();
    }

    private static ByteBuffer varint(ByteBuffer into, long value) {
        long rest = value;
        while (rest > 0x7f) {
            into.put((byte) (rest | 0x80));
            rest >>>= 7;
        }
        return into.put((byte) rest);
    }

    private static long readVarint(byte[] body) {
        long value = 0;
        for (int i = 0; i < body.length; i++) {
            value |= (body[i] & 0x7fL) << (7 * i);
            if (body[i] >= 0) {
                break;
            }
        }
        return value;
    }
}
