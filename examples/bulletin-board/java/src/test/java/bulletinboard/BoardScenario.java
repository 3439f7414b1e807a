package bulletinboard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpResponse;

/** One scenario with all operations of the board, the same for every database. */
final class BoardScenario {
    static final String LAMP =
            "title=Lamp&text=Shines+well%2C+sch%C3%B6n+%F0%9F%92%A1&contact=me%40example.org&price=12.5";

    private BoardScenario() {}

    /**
     * @param board with 50 seeded advertisements
     */
    static void walk(BoardClient board) throws Exception {
        assertEquals("advertisements: 50", firstLine(board.get("/statistics")));
        HttpResponse<String> posted = board.send("POST", "/ads", LAMP);
        assertEquals(201, posted.statusCode(), posted::body);
        String path = posted.headers().firstValue("Location").orElseThrow();

        String read = board.get(path).body();
        assertTrue(read.contains("Lamp\nprice:   12.50\ncontact: me@example.org\n"), read);
        assertTrue(read.contains("Shines well, schön 💡"), read);
        assertTrue(board.get("/ads?size=1").body().contains("Lamp\t12.50"));
        assertEquals(
                "page 1, 1 advertisements", firstLine(board.get("/search?word=SHINES%20well")));
        assertEquals("page 1, 0 advertisements", firstLine(board.get("/search?word=%25")));
        assertEquals("page 3, 11 advertisements", firstLine(board.get("/ads?page=3&size=20")));

        HttpResponse<String> updated =
                board.send("PUT", path, LAMP.replace("Lamp", "Lantern").replace("12.5", "0.05"));
        assertEquals(200, updated.statusCode(), updated::body);
        assertTrue(board.get(path).body().contains("Lantern\nprice:   0.05"));
        assertEquals(200, board.send("DELETE", path, null).statusCode());
        assertEquals(404, board.get(path).statusCode());
        assertEquals(404, board.send("DELETE", path, null).statusCode());
        assertEquals(404, board.send("PUT", path, LAMP).statusCode());
        assertEquals("advertisements: 50", firstLine(board.get("/statistics")));
    }

    private static String firstLine(HttpResponse<String> response) {
        assertEquals(200, response.statusCode(), response::body);
        return response.body().lines().findFirst().orElse("");
    }
}
