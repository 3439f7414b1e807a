package io.tachograph.overhead.sink;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The cheapest receiver that counts records, in its own process. The process prints {@code PORT n}.
 * After the end of its standard input it waits at most 10 s until all senders have disconnected,
 * and prints {@code RESULT} and the counts. With {@code kieker-files} it counts the records in the
 * files of a directory, and prints only {@code RESULT} and the counts.
 */
public final class Sink {
    private static final int SOCKET_BYTES = 1 << 20;
    private static final long GONE_MILLIS = 10_000;

    private final Receiver receiver;
    private final Tally tally = new Tally();
    private final List<Thread> connections = new ArrayList<>();

    private Sink(Receiver receiver) {
        this.receiver = receiver;
    }

    /** @param arguments the protocol and its parameters */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        String protocol = arguments.length == 0 ? "" : arguments[0];
        switch (protocol) {
            case "kieker":
                new Sink(new KiekerStream()).run();
                break;
            case "elastic":
                new Sink(new ElasticEvents()).run();
                break;
            case "otlp":
                new Sink(new OtlpRequests()).run();
                break;
            case "tachograph":
                new Sink(new NativeFrames(arguments.length > 1 ? arguments[1] : "")).run();
                break;
            case "kieker-files":
                System.out.println("RESULT " + KiekerFiles.count(Path.of(arguments[1])).json(cpuNanos()));
                break;
            default:
                System.err.println(
                        "usage: Sink kieker | elastic | otlp | tachograph [STATE:PATTERN] | kieker-files DIR");
                System.exit(2);
        }
    }

    private void run() throws IOException, InterruptedException {
        try (ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            listener.setReceiveBufferSize(SOCKET_BYTES);
            Thread acceptor = new Thread(() -> acceptAll(listener), "accept");
            acceptor.setDaemon(true);
            acceptor.start();
            System.out.println("PORT " + listener.getLocalPort());
            InputStream until = System.in;
            while (until.read() >= 0) {
                // Only the end of the input matters.
            }
        }
        long deadline = System.currentTimeMillis() + GONE_MILLIS;
        for (Thread connection : copy()) {
            connection.join(Math.max(1, deadline - System.currentTimeMillis()));
        }
        System.out.println("RESULT " + tally.json(cpuNanos()));
        System.exit(0);
    }

    private List<Thread> copy() {
        synchronized (connections) {
            return List.copyOf(connections);
        }
    }

    private void acceptAll(ServerSocket listener) {
        while (!listener.isClosed()) {
            try {
                Socket socket = listener.accept();
                tally.connections.incrementAndGet();
                Thread thread = new Thread(() -> serve(socket), "connection");
                synchronized (connections) {
                    connections.add(thread);
                }
                thread.start();
            } catch (IOException e) {
                if (!listener.isClosed()) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            receiver.serve(socket.getInputStream(), socket.getOutputStream(), tally);
        } catch (EOFException | SocketException e) {
            // The sender has disconnected, perhaps without reading the last answers; it may
            // reconnect.
        } catch (IOException | RuntimeException e) {
            tally.fault(e.toString());
        }
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }
}
