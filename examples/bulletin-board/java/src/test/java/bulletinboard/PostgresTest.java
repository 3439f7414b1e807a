package bulletinboard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** {@link BoardScenario} with a real PostgreSQL, and the behaviour when PostgreSQL fails. */
class PostgresTest {

    @Test
    void allOperationsWorkAndTheBoardOutlivesItsDatabase() throws Exception {
        try (PostgresServer postgres = new PostgresServer();
                BoardClient board =
                        new BoardClient(
                                "--db", postgres.url(), "--seed-ads", "50", "--pool", "4")) {
            BoardScenario.walk(board);
            postgres.stop();
            int status = board.get("/ads/1").statusCode();
            assertTrue(status == 500 || status == 503, "status " + status);
            assertEquals(200, board.get("/").statusCode());
        }
    }

    @Test
    void saysWhyItCannotStart() {
        Options nowhere =
                Options.parse(List.of("--db", "postgres://board@127.0.0.1:1/board"), Map.of());
        SQLException refused = assertThrows(SQLException.class, () -> BulletinBoard.start(nowhere));
        assertTrue(refused.getMessage().contains("refused"), refused::getMessage);
    }
}
