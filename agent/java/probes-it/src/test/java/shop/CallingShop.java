package shop;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Optional;

/**
 * Calls another program over HTTP, with both HTTP clients of the JDK. The argument is the address
 * of the other program.
 */
public final class CallingShop {
    private final HttpClient client = HttpClient.newHttpClient();
    private final URI address;

    private CallingShop(URI address) {
        this.address = address;
    }

    public static void main(String[] arguments) throws Exception {
        CallingShop shop = new CallingShop(URI.create(arguments[0]));
        // This method is not recorded, so the agent adds no trace header before the connect. After
        // the failed connect, no header can be added.
        HttpURLConnection vain =
                (HttpURLConnection) URI.create("http://127.0.0.1:1/vain").toURL().openConnection();
        for (int i = 0; i < 2; i++) {
            try {
                if (i == 0) {
                    vain.connect();
                }
                vain.getInputStream();
            } catch (IOException e) {
                // Expected, because the port is closed.
            }
        }
        shop.foreign();
        shop.send();
        shop.sendAsync();
        shop.urlConnection();
        shop.post();
        shop.missing();
        shop.refused();
    }

    void foreign() throws Exception {
        try {
            client.send(new Foreign(address), HttpResponse.BodyHandlers.discarding());
            throw new IllegalStateException("the client accepts a request without headers");
        } catch (UnsupportedOperationException e) {
            // Expected: Foreign.headers() throws it.
        }
    }

    void send() throws Exception {
        HttpRequest request =
                HttpRequest.newBuilder(address.resolve("/send/1"))
                        .header("X-Request-Id", "r-9")
                        .build();
        client.send(request, HttpResponse.BodyHandlers.ofString());
    }

    void sendAsync() throws Exception {
        HttpRequest request = HttpRequest.newBuilder(address.resolve("/async/2")).build();
        client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).get();
        HttpRequest refused =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:1/broken-promise")).build();
        client.sendAsync(refused, HttpResponse.BodyHandlers.ofString())
                .handle((answer, thrown) -> answer)
                .get();
    }

    void urlConnection() throws Exception {
        HttpURLConnection connection =
                (HttpURLConnection) address.resolve("/url/3").toURL().openConnection();
        connection.getResponseCode();
        connection.getInputStream().close();
    }

    void post() throws Exception {
        HttpURLConnection connection =
                (HttpURLConnection) address.resolve("/post/4").toURL().openConnection();
        connection.setDoOutput(true);
        connection.getOutputStream().write("title=Lamp".getBytes());
        connection.getInputStream().close();
    }

    void missing() throws Exception {
        HttpURLConnection connection =
                (HttpURLConnection) address.resolve("/unknown/5").toURL().openConnection();
        if (connection.getResponseCode() != 404) {
            throw new IllegalStateException("404 was expected");
        }
    }

    void refused() {
        try {
            client.send(
                    HttpRequest.newBuilder(URI.create("http://127.0.0.1:1/")).build(),
                    HttpResponse.BodyHandlers.discarding());
        } catch (Exception e) {
            // Expected, because the port is closed.
        }
    }

    /** A request class of the program. Its headers cannot be read. */
    private static final class Foreign extends HttpRequest {
        private final URI address;

        Foreign(URI address) {
            this.address = address;
        }

        @Override
        public Optional<BodyPublisher> bodyPublisher() {
            return Optional.empty();
        }

        @Override
        public String method() {
            return "GET";
        }

        @Override
        public Optional<Duration> timeout() {
            return Optional.empty();
        }

        @Override
        public boolean expectContinue() {
            return false;
        }

        @Override
        public URI uri() {
            return address;
        }

        @Override
        public Optional<HttpClient.Version> version() {
            return Optional.empty();
        }

        @Override
        public HttpHeaders headers() {
            throw new UnsupportedOperationException("headers");
        }
    }
}
