package bulletinboard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** The application over HTTP, with its embedded database. */
class BulletinBoardTest {
    private static BoardClient board;

    @BeforeAll
    static void start() throws Exception {
        board = new BoardClient("--seed-ads", "50", "--pool", "4");
    }

    @AfterAll
    static void stop() {
        board.close();
    }

    @Test
    void allOperationsWork() throws Exception {
        BoardScenario.walk(board);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
GET    | /                      | 200 | Bulletin board
HEAD   | /ads                   | 200 |
GET    | /nowhere               | 404 | not found, see / for a list of paths
GET    | /ads/                  | 404 | not found, see / for a list of paths
GET    | /ads/1/more            | 404 | not found, see / for a list of paths
GET    | /ads/999999            | 404 | no advertisement with id 999999
GET    | /ads/seven             | 400 | id must be a whole number above 0, got seven
GET    | /ads/-1                | 400 | id must be a whole number above 0, got -1
GET    | /ads/99999999999999999999 | 400 | got 99999999999999999999
GET    | /ads?page=0            | 400 | page must be a whole number between 1 and 1000000, got 0
GET    | /ads?size=201          | 400 | size must be a whole number between 1 and 200, got 201
GET    | /ads?pgae=1            | 400 | unknown parameter pgae
GET    | /ads?page=1&page=2     | 400 | parameter page is given 2 times
GET    | /ads?page=%FF          | 400 | not URL-encoded UTF-8
GET    | /search                | 400 | parameter word is missing
GET    | /search?word=%20       | 400 | word must have 1 to 100
GET    | /search?word=a%00b     | 400 | word must have 1 to 100
DELETE | /ads                   | 405 | DELETE is not allowed here; allowed: GET, HEAD, POST
POST   | /ads/1                 | 405 | here; allowed: DELETE, GET, HEAD, PUT
POST   | /ads                   | 415 | the body must be application/x-www-form-urlencoded
""")
    void answersRequestsWithStatusAndReason(String method, String path, int status, String part)
            throws Exception {
        check(board.send(method, path, null), status, part);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
text=b&contact=c&price=1                  | parameter title is missing
title=+&text=b&contact=c&price=1          | title must not be empty
title=a&text=b&contact=c&price=1.234      | decimals and 20 characters, without an exponent, got 1.234
title=a&text=b&contact=c&price=1e999999   | got 1e999999
title=a&text=b&contact=c&price=-1         | price must be between 0 and 1000000000
title=a&text=b&contact=c&price=cheap      | got cheap
title=a&text=b%00&contact=c&price=1       | text must not contain the character U+0000
title=a&text=b&contact=c&price=1&more=2   | unknown parameter more
""")
    void refusesBadAdvertisements(String form, String part) throws Exception {
        check(board.send("POST", "/ads", form), 400, part);
    }

    @Test
    void inputAboveALimitIsRefusedWithTheLimit() throws Exception {
        String rest = "&text=b&contact=c&price=1000000000";
        HttpResponse<String> longest =
                board.send("POST", "/ads", "title=" + "t".repeat(120) + rest);
        check(longest, 201, "posted");
        check(
                board.send("DELETE", longest.headers().firstValue("Location").orElseThrow(), null),
                200,
                "deleted");
        check(
                board.send("POST", "/ads", "title=" + "t".repeat(121) + rest),
                400,
                "title has 121 characters, at most 120");
        check(
                board.send("POST", "/ads", "title=" + "t".repeat(64 * 1024) + rest),
                413,
                "longer than 65536 bytes");
    }

    @Test
    void garbageIsAnsweredWith400() throws Exception {
        try (Socket socket = new Socket("127.0.0.1", board.port())) {
            socket.getOutputStream()
                    .write("\0\1\2 garbage\r\n\r\n".getBytes(StandardCharsets.ISO_8859_1));
            String answer =
                    new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(answer.startsWith("HTTP/1.1 400"), answer);
        }
        check(board.get("/"), 200, "Bulletin board");
    }

    @Test
    void manyRequestsShareFewDatabaseConnections() throws Exception {
        ExecutorService clients = Executors.newFixedThreadPool(16);
        try {
            List<Future<Integer>> answers =
                    IntStream.range(0, 400)
                            .mapToObj(
                                    i ->
                                            clients.submit(
                                                    () -> board.get("/ads?size=5").statusCode()))
                            .toList();
            for (Future<Integer> answer : answers) {
                assertEquals(200, answer.get());
            }
        } finally {
            clients.shutdownNow();
        }
    }

    @Test
    void aBoardInAFileSurvivesARestart(@TempDir Path directory) throws Exception {
        String[] options = {"--db", "file:" + directory.resolve("board"), "--seed-ads", "3"};
        try (BoardClient first = new BoardClient(options)) {
            check(first.send("POST", "/ads", BoardScenario.LAMP), 201, "posted #4");
        }
        try (BoardClient second = new BoardClient(options)) {
            check(second.get("/ads/4"), 200, "Lamp");
            check(second.get("/statistics"), 200, "advertisements: 4");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
--port=70000        | --port must be a whole number between 0 and 65535, got 70000
--pool=none         | --pool must be a whole number between 1 and 10000, got none
--threads=7         | --threads must be a whole number between 8 and 10000, got 7
--db=mysql://x/y    | database address must begin with memory:, file: or postgres://, got mysql://x/y
--db=mysql://u:a@secret@x?p=secret | database address must begin with memory:, file: or postgres://, got mysql://***@x?***
--db=u:a://secret@x/y | database address must begin with memory:, file: or postgres://, got ***@x/y
--db=u:secret@x/y   | database address must begin with memory:, file: or postgres://, got ***@x/y
--db=mysql://u:secret?a@x/y | database address must begin with memory:, file: or postgres://, got mysql://***@x/y
--db=postgres://u:secret %@x/y | database address is not a URI: Illegal character in authority, got postgres://***@x/y
--db=postgres://x   | database address must name a host and a database
--prot=1            | unknown option --prot=1
--port              | --port needs a value
""")
    void refusesBadOptions(String option, String message) {
        Exception refused =
                assertThrows(IllegalArgumentException.class, () -> new BoardClient(option));
        assertTrue(refused.getMessage().startsWith(message), refused::getMessage);
        assertFalse(refused.getMessage().contains("secret"), refused::getMessage);
    }

    @Test
    void aFlagWinsOverTheEnvironment() {
        Map<String, String> environment = Map.of("BOARD_POOL", "7", "BOARD_THREADS", "9");
        Options options = Options.parse(List.of("--pool", "8"), environment);
        assertEquals(8, options.pool());
        assertEquals(9, options.threads());
        assertEquals(1_000, options.seedAds());
    }

    private static void check(HttpResponse<String> response, int status, String part) {
        assertEquals(status, response.statusCode(), response::body);
        assertEquals(
                "text/plain; charset=utf-8",
                response.headers().firstValue("Content-Type").orElse("none"));
        assertTrue(
                part == null ? response.body().isEmpty() : response.body().contains(part),
                response::body);
    }
}
