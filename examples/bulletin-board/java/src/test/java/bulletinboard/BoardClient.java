package bulletinboard;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** A running bulletin board and an HTTP client. */
final class BoardClient implements AutoCloseable {
    private final BulletinBoard board;
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    BoardClient(String... options) throws Exception {
        board = BulletinBoard.start(Options.parse(List.of(options), Map.of("BOARD_PORT", "0")));
    }

    int port() {
        return board.port();
    }

    HttpResponse<String> get(String path) throws Exception {
        return send("GET", path, null);
    }

    /**
     * @param form URL-encoded fields, null for a request without a body
     */
    HttpResponse<String> send(String method, String path, String form) throws Exception {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + board.port() + path));
        if (form == null) {
            request.method(method, HttpRequest.BodyPublishers.noBody());
        } else {
            request.header("Content-Type", "application/x-www-form-urlencoded");
            request.method(
                    method, HttpRequest.BodyPublishers.ofString(form, StandardCharsets.UTF_8));
        }
        return http.send(
                request.build(), HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
    }

    @Override
    public void close() {
        board.close();
    }
}
