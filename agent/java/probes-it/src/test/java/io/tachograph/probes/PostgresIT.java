package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import shop.PostgresShop;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** By default, the bytes that the agent sends contain no data of the database. */
class PostgresIT {
    private static final String MESSAGE =
            "invalid input syntax for type integer: \"my-secret-token s3cret\"";

    private static Postgres postgres;

    @BeforeAll
    static void start() throws Exception {
        postgres = new Postgres();
    }

    @AfterAll
    static void stop() throws Exception {
        postgres.close();
    }

    private static Watched watched(int jdk, boolean messages, String pool) throws Exception {
        Map<String, String> settings =
                Map.of(
                        "TACHO_DATABASE_MESSAGES",
                        String.valueOf(messages),
                        "TACHO_EXCLUDE",
                        "shop.*.main,shop.*.<init>,shop.*.execute,shop.*.failure,shop.*.bound");
        return new Watched(jdk, settings, PostgresShop.class, pool, postgres.url());
    }

    private static List<String> names(Watched shop, String method) throws Exception {
        return shop.root("shop.PostgresShop." + method).children.stream()
                .filter(call -> call.kind == 4)
                .map(call -> call.operation)
                .collect(Collectors.toList());
    }

    @ParameterizedTest
    @CsvSource({"17, hikari", "25, hikari", "17, dbcp", "25, dbcp"})
    void noDataIsInTheBytesSent(int jdk, String pool) throws Exception {
        try (Watched shop = watched(jdk, false, pool)) {
            shop.end();
            assertTrue(shop.output().contains("failed as it should"), shop.output());
            // The names in quotes are kept. This shows that the agent recognises the dialect of
            // PostgreSQL, although the pool wraps the statement.
            assertEquals(
                    List.of("select \"title\" from \"ad\" where \"id\" = ? and title <> ?"),
                    plain(names(shop, "plain()"), shop));
            assertEquals(
                    List.of(
                            "update \"ad\" set title = ? where id = ?",
                            "insert into \"ad\" values (?, ?)"),
                    plain(names(shop, "batches()"), shop));
            String sent = shop.sent();
            assertFalse(sent.contains("s3cret"), () -> around(sent, "s3cret"));
            assertFalse(sent.contains("my-secret"), () -> around(sent, "my-secret"));
            assertFalse(sent.contains("invalid input"), () -> around(sent, "invalid input"));
            // This proves that the search covers names of statements and texts of exceptions.
            assertTrue(sent.contains("select \"title\" from \"ad\" where title = ? or title = ?"));
            assertTrue(sent.contains("org.postgresql.util.PSQLException (SQLState 22P02, code 0)"));
        }
    }

    @Test
    void messagesAreSentIfConfigured() throws Exception {
        try (Watched shop = watched(17, true, "hikari")) {
            shop.end();
            Call fails = shop.root("shop.PostgresShop.fails()");
            assertTrue(
                    fails.attributes
                            .get("exception")
                            .startsWith(
                                    "java.lang.IllegalStateException: cannot read: ERROR: "
                                            + MESSAGE),
                    fails.attributes::toString);
            String sent = shop.sent();
            assertTrue(sent.contains("org.postgresql.util.PSQLException: ERROR: " + MESSAGE));
            // Even with the setting, names of statements contain no data, and the password of the
            // database is not sent.
            assertFalse(sent.contains("plain s3cret"), () -> around(sent, "plain s3cret"));
            assertFalse(sent.contains("bound s3cret"), () -> around(sent, "bound s3cret"));
            assertFalse(sent.contains("password"), () -> around(sent, "password"));
        }
    }

    /** The names, without the statements that the pool itself executes. */
    private static List<String> plain(List<String> names, Watched shop) {
        List<String> own = names.stream().filter(name -> name.contains("\"ad\"")).toList();
        assertFalse(own.isEmpty(), () -> shop.shapes().toString());
        return own;
    }

    private static String around(String sent, String word) {
        int at = sent.indexOf(word);
        return sent.substring(Math.max(0, at - 200), Math.min(sent.length(), at + 200))
                .replaceAll("[^ -~]", ".");
    }
}
