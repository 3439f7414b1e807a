package shop;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

/**
 * Keeps many requests open at the same time. {@link #SILENT} requests are never answered. The other
 * requests are answered after all {@link #ANSWERED} of them have arrived.
 */
public final class PromisingShop {
    public static final int SILENT = 300;
    public static final int ANSWERED = 400;

    private static final byte[] ANSWER =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
                    .getBytes(StandardCharsets.ISO_8859_1);

    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final ServerSocket socket;

    private PromisingShop(ServerSocket socket) {
        this.socket = socket;
    }

    public static void main(String[] arguments) throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1_000, InetAddress.getLoopbackAddress())) {
            PromisingShop shop = new PromisingShop(socket);
            Thread listener = new Thread(shop::listen);
            listener.setDaemon(true);
            listener.start();
            List<CompletableFuture<?>> silent = new ArrayList<>();
            for (int at = 0; at < SILENT; at++) {
                silent.add(shop.ask("/silent"));
            }
            List<CompletableFuture<?>> answered = new ArrayList<>();
            for (int at = 0; at < ANSWERED; at++) {
                answered.add(shop.ask("/answered"));
            }
            for (CompletableFuture<?> each : answered) {
                each.get();
            }
            if (silent.stream().anyMatch(CompletableFuture::isDone)) {
                throw new IllegalStateException("a request to /silent has ended");
            }
            new CountDownLatch(1).await(); // until the test kills the process
        }
    }

    private CompletableFuture<?> ask(String path) {
        URI address = URI.create("http://127.0.0.1:" + socket.getLocalPort() + path);
        return client.sendAsync(
                HttpRequest.newBuilder(address).build(), HttpResponse.BodyHandlers.ofString());
    }

    private void listen() {
        List<Socket> silent = new ArrayList<>();
        List<Socket> waiting = new ArrayList<>();
        try {
            while (true) {
                Socket one = socket.accept();
                (head(one).startsWith("GET /silent ") ? silent : waiting).add(one);
                if (waiting.size() == ANSWERED) {
                    for (Socket each : waiting) {
                        each.getOutputStream().write(ANSWER);
                        each.close();
                    }
                }
            }
        } catch (IOException e) {
            // The socket is closed at the end of the program.
        }
    }

    private static String head(Socket one) throws IOException {
        InputStream in = one.getInputStream();
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            int next = in.read();
            if (next < 0) {
                throw new IOException("the request is cut off");
            }
            head.append((char) next);
        }
        return head.toString();
    }
}
