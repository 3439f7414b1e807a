package shop;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

import org.apache.commons.dbcp2.BasicDataSource;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;

import javax.sql.DataSource;

/**
 * Statements for a real PostgreSQL, through one of two pools. The data of a statement, in its text
 * or in a bound value, contains the word {@code s3cret}. Together, the statements use the syntaxes
 * that PostgreSQL has for data.
 */
public final class PostgresShop {
    private final DataSource source;

    private PostgresShop(DataSource source) {
        this.source = source;
    }

    /** @param arguments the pool and the URL */
    public static void main(String[] arguments) throws Exception {
        try (AutoCloseable pool =
                arguments[0].equals("hikari") ? hikari(arguments[1]) : dbcp(arguments[1])) {
            PostgresShop shop = new PostgresShop((DataSource) pool);
            shop.create();
            shop.plain();
            shop.literals();
            shop.prepared();
            shop.batches();
            try {
                shop.fails();
            } catch (IllegalStateException e) {
                System.out.println("failed as it should");
            }
        }
    }

    private static HikariDataSource hikari(String url) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername("board");
        config.setPassword("password-s3cret");
        return new HikariDataSource(config);
    }

    private static BasicDataSource dbcp(String url) {
        BasicDataSource pool = new BasicDataSource();
        pool.setUrl(url);
        pool.setUsername("board");
        pool.setPassword("password-s3cret");
        return pool;
    }

    private void execute(String... texts) throws SQLException {
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    void create() throws SQLException {
        execute(
                "drop table if exists \"ad\"",
                "create table \"ad\" (id int primary key, title varchar(100))",
                "insert into \"ad\" values (1, 'title s3cret')");
    }

    /** Uses names in double quotes. In some other dialects, double quotes enclose strings. */
    void plain() throws SQLException {
        execute("select \"title\" from \"ad\" where \"id\" = 1 and title <> 'plain s3cret'");
    }

    void literals() throws SQLException {
        execute(
                "select 'it''s s3cret', E'esc\\'s s3cret', $$dollar s3cret$$, $t$tag s3cret$t$",
                "select U&'unicode s3cret', B'1001', X'1FF', 'back\\', ' s3cret'",
                "/* comment s3cret /* nested s3cret */ */ select 1 -- line s3cret",
                "select * from \"ad\" where title in ('a s3cret', 'b s3cret') or id in (7, 8)",
                "select '{\"json\": \"s3cret\"}'::json ->> 'json s3cret'");
    }

    void prepared() throws SQLException {
        try (Connection connection = source.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement(
                                "select \"title\" from \"ad\""
                                        + " where title = ? or title = 's3cret'")) {
            statement.setString(1, "bound s3cret");
            statement.executeQuery().close();
        }
    }

    void batches() throws SQLException {
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement();
                PreparedStatement prepared =
                        connection.prepareStatement("insert into \"ad\" values (?, ?)")) {
            statement.addBatch("update \"ad\" set title = 'batched s3cret' where id = 1");
            statement.addBatch("update \"ad\" set title = $$batched s3cret$$ where id = 2");
            statement.executeBatch();
            prepared.setInt(1, 2);
            prepared.setString(2, "bound in a batch s3cret");
            prepared.addBatch();
            prepared.executeBatch();
        }
    }

    /** Statements that fail. Several messages of the database contain data of the statement. */
    void fails() {
        SQLException first = null;
        for (String text :
                new String[] {
                    "select 'my-secret-token s3cret'::int",
                    "insert into \"ad\" values (1, 'key s3cret')",
                    "insert into \"ad\" values (9, '" + "long s3cret ".repeat(20) + "')",
                    "select nothing from \"ad\"",
                    "selct 's3cret'",
                    "select 'open s3cret"
                }) {
            first = failure(text, first);
        }
        first = bound("my-secret-token s3cret", first);
        throw new IllegalStateException("cannot read: " + first.getMessage(), first);
    }

    private SQLException failure(String text, SQLException before) {
        try {
            execute(text);
            throw new AssertionError(text);
        } catch (SQLException e) {
            if (before != null) {
                e.setNextException(before);
            }
            return e;
        }
    }

    private SQLException bound(String value, SQLException before) {
        try (Connection connection = source.getConnection();
                PreparedStatement statement = connection.prepareStatement("select ?::text::int")) {
            statement.setString(1, value);
            statement.addBatch();
            statement.setString(1, value);
            statement.executeQuery().close();
            throw new AssertionError(value);
        } catch (SQLException e) {
            e.addSuppressed(before);
            return e;
        }
    }
}
