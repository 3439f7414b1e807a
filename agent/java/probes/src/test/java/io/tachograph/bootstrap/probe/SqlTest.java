package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Collectors;

/** Statements and their shapes; all agents use the same table in {@code testdata/sql}. */
class SqlTest {
    private static final Path FOLDER = Path.of("../../../testdata/sql");

    @ParameterizedTest
    @EnumSource(SqlDialect.class)
    void statementsHaveTheShapesOfTheTable(SqlDialect dialect) throws IOException {
        List<String[]> cases = lines("shapes.tsv", dialect);
        assertTrue(cases.size() > 30, "the table has only " + cases.size() + " cases");
        for (String[] one : cases) {
            assertEquals(one[2], Sql.shape(one[1], dialect), one[1]);
        }
    }

    @ParameterizedTest
    @EnumSource(SqlDialect.class)
    void noShapeContainsALiteral(SqlDialect dialect) throws IOException {
        List<String[]> literals = lines("literals.tsv", dialect);
        List<String> statements = lines("statements.txt");
        Random random = new Random(7);
        for (int round = 0; round < 20_000; round++) {
            StringBuilder text = new StringBuilder();
            String statement = statements.get(random.nextInt(statements.size()));
            for (String part : statement.split("\\{\\}", -1)) {
                if (text.length() > 0) {
                    text.append(literals.get(random.nextInt(literals.size()))[1]);
                }
                text.append(part);
            }
            String whole = text.toString().replace("§", "s3cret");
            int length = random.nextBoolean() ? whole.length() : random.nextInt(whole.length());
            String shape = Sql.shape(whole.substring(0, length), dialect);
            assertFalse(shape.contains("s3c"), () -> shape + " of " + whole.substring(0, length));
        }
    }

    @ParameterizedTest
    @EnumSource(SqlDialect.class)
    void anyTextHasAShape(SqlDialect dialect) {
        Random random = new Random(1);
        String signs = "'\"`$-/*?(),;: \n\\ab1Eein.[]#%@!q漢\ud83d";
        for (int round = 0; round < 20_000; round++) {
            StringBuilder text = new StringBuilder();
            for (int length = random.nextInt(40); length > 0; length--) {
                text.append(signs.charAt(random.nextInt(signs.length())));
            }
            String shape = Sql.shape(text.toString(), dialect);
            assertTrue(shape.length() <= SqlShape.NAME_CHARS_MAX, text::toString);
        }
        assertEquals("", Sql.shape(null, dialect));
        assertEquals("", Sql.shape("", dialect));
    }

    @Test
    void longTextsAreCutAndReadOnlyInPart() {
        String wide = Sql.shape("select " + "a, ".repeat(5_000), SqlDialect.POSTGRESQL);
        assertEquals(SqlShape.NAME_CHARS_MAX, wide.length());
        assertTrue(wide.endsWith("..."));
        StringBuilder rows = new StringBuilder("insert into t values (0, 'x')");
        StringBuilder list = new StringBuilder("select a from t where b in (-50");
        for (int i = 1; i < 100_000; i++) {
            rows.append(", (").append(i).append(", 'x')");
            list.append(", ").append(i - 50);
        }
        assertEquals(
                "insert into t values (?, ?), ...", Sql.shape(rows.toString(), SqlDialect.MYSQL));
        assertEquals(
                "select a from t where b in (?...", Sql.shape(list + ")", SqlDialect.MYSQL));
        for (SqlDialect dialect : SqlDialect.values()) {
            String digits = "1".repeat(1_000_000);
            assertEquals("select ?...", Sql.shape("select " + digits, dialect));
            assertEquals("select ?...", Sql.shape("select '" + digits + "'", dialect));
        }
    }

    @Test
    void thePackageOfTheDriverDeterminesTheDialect() {
        assertEquals(SqlDialect.POSTGRESQL, SqlDialect.ofName("org.postgresql.jdbc.PgConnection"));
        assertEquals(SqlDialect.MYSQL, SqlDialect.ofName("com.mysql.cj.jdbc.ConnectionImpl"));
        assertEquals(SqlDialect.MYSQL, SqlDialect.ofName("org.mariadb.jdbc.Connection"));
        assertEquals(SqlDialect.STANDARD, SqlDialect.ofName("org.h2.jdbc.JdbcConnection"));
        assertEquals(SqlDialect.OTHER, SqlDialect.ofName("com.zaxxer.hikari.pool.HikariProxy"));
        assertEquals(SqlDialect.OTHER, SqlDialect.of(String.class));
    }

    private static List<String> lines(String name) throws IOException {
        return Files.readAllLines(FOLDER.resolve(name)).stream()
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .map(line -> line.replace('⏎', '\n').replace('⇤', '\r'))
                .map(line -> line.replace('␜', '\u001c').replace('␤', '\u0085'))
                .collect(Collectors.toList());
    }

    private static List<String[]> lines(String name, SqlDialect dialect) throws IOException {
        String key = dialect.name().toLowerCase(Locale.ROOT);
        return lines(name).stream()
                .map(line -> line.split("\t", -1))
                .filter(line -> isOf(line[0], key))
                .collect(Collectors.toList());
    }

    private static boolean isOf(String names, String key) {
        return names.equals("*") || Arrays.asList(names.split(",")).contains(key);
    }
}
