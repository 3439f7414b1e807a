package bulletinboard;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

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

    @Test
    void theNewestVersionOfPostgresIsUsed() {
        Stream<Path> versions = Stream.of("9.6", "17", "common", "9", "10").map(Path::of);
        List<String> sorted =
                versions.sorted(PostgresServer.NEWEST_FIRST)
                        .map(Path::toString)
                        .collect(Collectors.toList());
        assertEquals(List.of("17", "10", "9.6", "9", "common"), sorted);
    }
}
