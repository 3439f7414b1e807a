package shop;

import java.io.ByteArrayOutputStream;
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
import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Sends requests to a socket, and prints the bytes that arrive and the answers. */
public final class RawShop {
    private static final String ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    private static final String MOVED =
            "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n";

    private final ServerSocket socket;
    private final HttpClient client;

    private RawShop(ServerSocket socket, HttpClient.Version version) {
        this.socket = socket;
        this.client =
                HttpClient.newBuilder()
                        .version(version)
                        .followRedirects(HttpClient.Redirect.ALWAYS)
                        .build();
    }

    public static void main(String[] arguments) throws Exception {
        for (HttpClient.Version version : HttpClient.Version.values()) {
            if (version.name().equals("HTTP_3")) {
                continue; // HTTP/3 sends no bytes to a socket of TCP
            }
            try (ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
                new RawShop(socket, version).sendAll();
            }
        }
    }

    private void sendAll() throws Exception {
        Thread listener = new Thread(this::listen);
        listener.setDaemon(true);
        listener.start();
        send(request("/plain"));
        send(request("/get").GET());
        send(request("/delete").DELETE());
        send(request("/own").method("GET", HttpRequest.BodyPublishers.noBody()));
        send(request("/post").POST(HttpRequest.BodyPublishers.ofString("title=Lamp")));
        send(request("/empty").POST(HttpRequest.BodyPublishers.noBody()));
        send(request("/headers").header("X-A", "1").header("X-A", "2").header("x-b", "3"));
        send(request("/late").timeout(Duration.ofMinutes(2)));
        send(request("/told").header("traceparent", "program's own"));
        send(request("/moved"));
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(
                URI.create("http://127.0.0.1:" + socket.getLocalPort() + path));
    }

    void send(HttpRequest.Builder builder) throws Exception {
        HttpRequest request = builder.build();
        HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        say(request, answer);
        say(request, client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).get());
        // A program may also send the request object of an answer.
        say(request, client.send(answer.request(), HttpResponse.BodyHandlers.ofString()));
    }

    private static void say(HttpRequest request, HttpResponse<String> answer) {
        HttpRequest told = answer.request();
        System.out.println(
                String.join(
                        " ",
                        "answer",
                        told.method(),
                        told.uri().getPath(),
                        told.headers().map().toString(),
                        told.bodyPublisher().map(body -> "body " + body.contentLength()).toString(),
                        told.version().toString(),
                        told.timeout().toString(),
                        told.getClass().getSimpleName(),
                        "equal " + told.equals(request) + (told.hashCode() == request.hashCode()),
                        "same " + (told == request),
                        "before " + answer.previousResponse().isPresent(),
                        request.headers().map().toString()));
    }

    private void listen() {
        try {
            while (true) {
                try (Socket one = socket.accept()) {
                    String head = serve(one);
                    while (head != null) {
                        head = serve(one);
                    }
                }
            }
        } catch (IOException e) {
            // The socket is closed after the last request.
        }
    }

    /** Serves one request. @return null at the end of the connection */
    private static String serve(Socket one) throws IOException {
        InputStream in = one.getInputStream();
        ByteArrayOutputStream head = new ByteArrayOutputStream();
        String text = "";
        while (!text.endsWith("\r\n\r\n")) {
            int next = in.read();
            if (next < 0) {
                return null;
            }
            head.write(next);
            text = head.toString(StandardCharsets.ISO_8859_1);
        }
        String body = "";
        for (String line : text.split("\r\n")) {
            if (line.toLowerCase().startsWith("content-length: ")) {
                int length = Integer.parseInt(line.substring("content-length: ".length()));
                body = new String(in.readNBytes(length), StandardCharsets.ISO_8859_1);
            }
        }
        String lines =
                Arrays.stream(text.split("\r\n")).collect(Collectors.joining("\n< ", "< ", "\n"));
        System.out.print(lines + "< " + body + ".\n");
        String answer = text.startsWith("GET /moved") ? MOVED : ANSWER;
        one.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
        return text;
    }
}
