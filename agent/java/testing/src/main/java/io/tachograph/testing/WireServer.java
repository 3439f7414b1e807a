package io.tachograph.testing;

import io.tachograph.bootstrap.Session;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.zip.CRC32C;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLServerSocket;

/**
 * A server of the native protocol in this JVM. Received data survives {@link #stop} and {@link
 * #start}, as it would on a disk.
 */
public final class WireServer implements Closeable {
    public enum Mode {
        /** Follows the protocol. */
        GOOD,
        /** Reads everything and acknowledges nothing. */
        SILENT,
        /** Accepts and never reads. */
        DEAF,
        /** Closes the next connection at once, and follows the protocol after that. */
        CLOSING_ONCE,
        /**
         * Never reads from the next connection, and follows the protocol on further connections.
         */
        HANGING_ONCE,
        /** Sends invalid bytes at the start of each connection, and closes it. */
        GARBAGE,
        /** Sends ERROR {@link #errorCode} at the start of each connection, and closes it. */
        REFUSING,
        /**
         * Answers the first DATA frame with ERROR {@link #errorCode}, and follows the protocol
         * after that.
         */
        REFUSING_DATA,
        /**
         * Answers the first DATA frame with WAIT, is silent for longer than three heartbeats, and
         * follows the protocol after that.
         */
        WAITING
    }

    public volatile Mode mode = Mode.GOOD;
    public volatile int errorCode = 9;
    public volatile int heartbeatMs = 1_000;

    /** True to act like a server that does not support declared records. */
    public volatile boolean isOld;

    /** The required token, or null. A client without the token gets ERROR {@link #errorCode}. */
    public volatile String token;

    /** The token of the last client; empty if it had none. */
    public volatile String presented = "";

    public final Map<String, String> hello = new LinkedHashMap<>();
    public volatile int connections;
    public volatile int byes;
    public volatile long executionsDropped;
    public volatile long entriesDropped;
    public volatile long dataBytes;

    /** The bodies of all received frames; null to keep none. */
    public volatile ByteArrayOutputStream copy;

    /** Bytes of all received frames. */
    public volatile long allBytes;

    /** The first protocol error of a client; null if there was none. */
    public volatile Throwable fault;

    private final Map<String, Long> acknowledged = new HashMap<>();
    private final Map<String, Decoder> decoders = new HashMap<>();
    private final int port;
    private volatile ServerSocket listener;
    private volatile Socket client;
    /** The connection of {@link Mode#HANGING_ONCE}. */
    private volatile Socket hanging;
    private volatile Probed probed;
    private byte[] probes;
    private OutputStream toClient;
    /** The first 4 bytes, "tach", of session ids that are derived from a secret. */
    private static final long MARK = 0x74616368;

    private Decoder last = new Decoder(new Session(0, 0));

    private final SSLContext tls;
    private final boolean needsCertificate;

    /** Maximum number of further ports to try if the first port is in use. */
    private static final int ATTEMPTS_MAX = 1_000;

    /** Listens on a free port of 127.0.0.1. */
    public WireServer() throws IOException {
        this(null, false);
    }

    /**
     * @param tls null for a server without TLS
     * @param needsCertificate true if clients need a certificate
     */
    public WireServer(SSLContext tls, boolean needsCertificate) throws IOException {
        this.tls = tls;
        this.needsCertificate = needsCertificate;
        listener = listenBelowEphemeralPorts();
        port = listener.getLocalPort();
        serve(listener);
    }

    public int port() {
        return port;
    }

    public String address() {
        return "127.0.0.1:" + port;
    }

    /**
     * Listens on a port below 32768, so that Linux gives it to no other program as an ephemeral
     * port while this server is stopped.
     */
    private ServerSocket listenBelowEphemeralPorts() throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                return listen(ThreadLocalRandom.current().nextInt(10_000, 32_768));
            } catch (BindException e) {
                if (attempt == ATTEMPTS_MAX) {
                    throw e;
                }
            }
        }
    }

    private ServerSocket listen(int port) throws IOException {
        ServerSocket socket =
                tls == null
                        ? new ServerSocket()
                        : tls.getServerSocketFactory().createServerSocket();
        if (socket instanceof SSLServerSocket encrypted) {
            encrypted.setNeedClientAuth(needsCertificate);
        }
        socket.setReuseAddress(true);
        socket.setReceiveBufferSize(
                65_536); // small, so that the client soon notices that the server does not read
        socket.bind(new java.net.InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
        return socket;
    }

    /** Continues to listen after {@link #stop}. */
    public void start() throws IOException {
        listener = listen(port);
        serve(listener);
    }

    /** Simulates a crash: closes the port and the connection. */
    public void stop() throws IOException {
        listener.close();
        for (Socket socket : new Socket[] {client, hanging}) {
            if (socket != null) {
                socket.close();
            }
        }
    }

    @Override
    public void close() throws IOException {
        stop();
    }

    /**
     * The data of the last session. Use it while holding the lock of this object, or after the
     * client has ended.
     */
    public synchronized Decoder decoder() {
        return last;
    }

    /**
     * Waits until the condition holds, the time is over, or a client has made a protocol error.
     *
     * @return true if the condition holds
     */
    public boolean await(long seconds, Predicate<Decoder> condition) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (true) {
            synchronized (this) {
                if (condition.test(last)) {
                    return true;
                }
            }
            if (System.nanoTime() - until > 0 || fault != null) {
                return false;
            }
            Thread.sleep(20);
        }
    }

    /** Ends the open connection with ERROR {@link #errorCode}. */
    public synchronized void refuse(String message) throws IOException {
        toClient.write(frame(69, varint(errorCode), string(message)));
        client.shutdownOutput();
    }

    /** Sends rules to the client now, if connected, and after each WELCOME. */
    public synchronized void rules(long revision, ProbeRule... rules) {
        byte[][] parts = new byte[2 + 2 * rules.length][];
        parts[0] = varint(revision);
        parts[1] = varint(rules.length);
        for (int at = 0; at < rules.length; at++) {
            parts[2 + 2 * at] = new byte[] {(byte) rules[at].state()};
            parts[3 + 2 * at] = string(rules[at].pattern());
        }
        probes = frame(71, parts);
        if (toClient != null) {
            try {
                toClient.write(probes);
            } catch (IOException e) {
                // On a busy machine the client may have given up the connection. It gets the rules
                // at the next WELCOME.
            }
        }
    }

    /** Acts like a server that does not support rules from now on, and forgets the last PROBED. */
    public synchronized void forgetRules() {
        probes = null;
        probed = null;
    }

    /** The last PROBED answer of the client; null if there was none. */
    public Probed probed() {
        return probed;
    }

    /** Waits for a PROBED answer that matches. @return true if such an answer arrived in time */
    public boolean awaitProbed(long seconds, Predicate<Probed> condition)
            throws InterruptedException {
        return await(seconds, got -> probed != null && condition.test(probed));
    }

    private void serve(ServerSocket socket) {
        Thread thread =
                new Thread(
                        () -> {
                            while (!socket.isClosed()) {
                                try {
                                    Socket accepted = socket.accept();
                                    client = accepted;
                                    connections++;
                                    if (mode == Mode.HANGING_ONCE) {
                                        mode = Mode.GOOD;
                                        hanging = accepted;
                                    } else {
                                        connection(accepted);
                                    }
                                } catch (EOFException
                                        | java.net.SocketException
                                        | SSLException e) {
                                    // Either side has closed the connection, or TLS has failed.
                                } catch (IOException | RuntimeException e) {
                                    fault = fault == null ? e : fault;
                                }
                            }
                        },
                        "wire-server");
        thread.setDaemon(true);
        thread.start();
    }

    private void connection(Socket socket) throws IOException {
        try (socket) {
            synchronized (this) {
                toClient = null;
            }
            if (mode == Mode.CLOSING_ONCE) {
                mode = Mode.GOOD;
                return;
            }
            if (mode == Mode.DEAF) {
                while (mode == Mode.DEAF && !socket.isClosed()) {
                    pause();
                }
                return;
            }
            DataInputStream in =
                    new DataInputStream(
                            new java.io.BufferedInputStream(socket.getInputStream(), 65_536));
            OutputStream out = socket.getOutputStream();
            if (mode == Mode.GARBAGE) {
                out.write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes());
                return;
            }
            if (mode == Mode.REFUSING) {
                out.write(frame(69, varint(errorCode), string("no")));
                return;
            }
            frames(in, out);
        }
    }

    private void frames(DataInputStream in, OutputStream out) throws IOException {
        String session = null;
        Decoder decoder = null;
        while (true) {
            byte[] header = in.readNBytes(12);
            if (header.length < 12) {
                return;
            }
            int length = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt();
            byte[] body = in.readNBytes(length);
            if (body.length < length) {
                return;
            }
            check(header, body);
            ByteArrayOutputStream kept = copy;
            if (kept != null) {
                kept.writeBytes(body);
            }
            allBytes += 12 + length;
            int type = header[4];
            Fields.check(type == 1 || session != null, "frame " + type + " before HELLO");
            if (type == 3 && mode == Mode.REFUSING_DATA) {
                mode = Mode.GOOD;
                out.write(frame(69, varint(errorCode), string("refused by test")));
                return;
            }
            if (type == 3 && mode == Mode.WAITING) {
                mode = Mode.GOOD;
                askToWait(out);
            }
            synchronized (this) {
                switch (type) {
                    case 1 -> {
                        session = hello(body, out);
                        decoder = decoders.get(session);
                        last = decoder;
                        decoder.forgetDictionary();
                        decoder.isOld = isOld;
                        welcome(session, out);
                    }
                    case 2 -> decoder.dict(body);
                    case 3 -> {
                        long seq = Decoder.seq(body);
                        if (seq > acknowledged.get(session)) {
                            decoder.data(body);
                            dataBytes += 12 + length;
                            acknowledged.put(session, seq);
                        }
                        if (mode != Mode.SILENT) {
                            out.write(frame(66, varint(seq)));
                        }
                    }
                    case 4 -> {
                        Fields ping = new Fields(body);
                        executionsDropped = ping.varint();
                        ping.varint();
                        entriesDropped = ping.varint();
                        out.write(frame(68, new byte[8]));
                    }
                    case 5 -> byes++;
                    case 6 -> probed = Probed.read(body);
                    default -> throw new IllegalStateException("frame of type " + type);
                }
            }
            while (mode == Mode.DEAF) {
                pause();
            }
        }
    }

    private void askToWait(OutputStream out) throws IOException {
        out.write(frame(67, varint(4L * heartbeatMs)));
        for (long until = System.nanoTime() + 4_000_000L * heartbeatMs;
                System.nanoTime() < until; ) {
            pause();
        }
    }

    private void welcome(String session, OutputStream out) throws IOException {
        out.write(
                frame(
                        65,
                        new byte[] {1},
                        varint(acknowledged.get(session)),
                        varint(4_194_304),
                        varint(heartbeatMs),
                        isOld ? new byte[0] : varint(1)));
        toClient = out;
        if (probes != null) {
            out.write(probes);
        }
    }

    /** Ends the connection if the client lacks the required token. */
    private String hello(byte[] body, OutputStream out) throws IOException {
        Fields in = new Fields(body);
        Fields.check(new String(in.raw(5)).equals("tacho"), "HELLO does not begin with \"tacho\"");
        Fields.check(in.u8() == 1 && in.u8() == 1, "HELLO offers a version other than 1");
        long high = in.id8();
        long low = in.id8();
        for (int n = in.count(); n > 0; n--) {
            hello.put(in.string(), in.string());
        }
        if (high >>> 32 == MARK) {
            Session own = Session.of(in.raw(16));
            Fields.check(
                    own.high() == high && own.low() == low,
                    "the session is not derived from the secret");
        }
        presented = in.atEnd() ? "" : in.string();
        if (token != null && !token.equals(presented)) {
            out.write(frame(69, varint(errorCode), string("unknown token")));
            throw new EOFException("a client without the token");
        }
        String session = Fields.hex(high) + Fields.hex(low);
        acknowledged.putIfAbsent(session, 0L);
        decoders.computeIfAbsent(session, key -> new Decoder(new Session(high, low)));
        return session;
    }

    private static void check(byte[] header, byte[] body) {
        CRC32C crc = new CRC32C();
        crc.update(header, 0, 8);
        crc.update(body, 0, body.length);
        int claimed = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt(8);
        Fields.check(claimed == (int) crc.getValue(), "frame with a wrong checksum");
    }

    private static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static byte[] frame(int type, byte[]... parts) {
        int length = 0;
        for (byte[] part : parts) {
            length += part.length;
        }
        ByteBuffer frame = ByteBuffer.allocate(12 + length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(length).putInt(type).putInt(0);
        for (byte[] part : parts) {
            frame.put(part);
        }
        CRC32C crc = new CRC32C();
        crc.update(frame.array(), 0, 8);
        crc.update(frame.array(), 12, length);
        frame.putInt(8, (int) crc.getValue());
        return frame.array();
    }

    private static byte[] varint(long value) {
        ByteBuffer out = ByteBuffer.allocate(10);
        while ((value & ~0x7fL) != 0) {
            out.put((byte) (value | 0x80));
            value >>>= 7;
        }
        out.put((byte) value);
        return java.util.Arrays.copyOf(out.array(), out.position());
    }

    private static byte[] string(String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        byte[] length = varint(bytes.length);
        return ByteBuffer.allocate(length.length + bytes.length).put(length).put(bytes).array();
    }
}
