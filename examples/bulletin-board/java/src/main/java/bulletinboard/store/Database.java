package bulletinboard.store;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;

import javax.sql.DataSource;

/** A connection pool. {@link #open} creates the table if it does not exist. */
public final class Database implements AutoCloseable {
    /** Longest wait for a free connection; then the request gets 503. */
    private static final long WAIT_MS_MAX = 5_000;

    private static final String TABLE =
            "create table if not exists advertisement ("
                    + "id bigint generated always as identity primary key, "
                    + "title varchar(120) not null, "
                    + "text varchar(4000) not null, "
                    + "contact varchar(200) not null, "
                    + "price_cents bigint not null, "
                    + "created timestamp with time zone not null)";

    private final HikariDataSource pool;

    private Database(HikariDataSource pool) {
        this.pool = pool;
    }

    /**
     * @param url {@code memory:}, {@code file:PATH} or {@code
     *     postgres://user:password@host:port/name}
     * @param connections size of the pool
     * @throws IllegalArgumentException if {@code url} has none of these forms
     * @throws SQLException if the database cannot be reached or the table cannot be created
     */
    public static Database open(String url, int connections) throws SQLException {
        HikariConfig config = new HikariConfig();
        address(url, config);
        config.setPoolName("board");
        config.setMaximumPoolSize(connections);
        config.setConnectionTimeout(WAIT_MS_MAX);
        Database database;
        try {
            database = new Database(new HikariDataSource(config));
        } catch (RuntimeException e) {
            // Hikari wraps the driver's exception once or twice.
            throw new SQLException(root(e).getMessage(), e);
        }
        try (Connection connection = database.pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(TABLE);
        } catch (SQLException e) {
            database.close();
            throw e;
        }
        return database;
    }

    public DataSource pool() {
        return pool;
    }

    @Override
    public void close() {
        pool.close();
    }

    private static void address(String url, HikariConfig config) {
        if (url.equals("memory:")) {
            config.setJdbcUrl("jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1");
        } else if (url.startsWith("file:")) {
            config.setJdbcUrl(
                    "jdbc:h2:file:" + Path.of(url.substring("file:".length())).toAbsolutePath());
        } else if (url.startsWith("postgres://") || url.startsWith("postgresql://")) {
            postgresAddress(uri(url), config);
        } else {
            throw new IllegalArgumentException(
                    "database address must begin with memory:, file: or postgres://, got "
                            + masked(url));
        }
    }

    /** Removes possible secrets: the user info, and the part after a question mark. */
    private static String masked(String url) {
        int at = url.lastIndexOf('@');
        int query = url.indexOf('?', at + 1);
        String place = query < 0 ? url.substring(at + 1) : url.substring(at + 1, query) + "?***";
        if (at < 0) {
            return place;
        }
        int scheme = url.indexOf(':');
        return (url.startsWith("://", scheme) ? url.substring(0, scheme + 3) : "") + "***@" + place;
    }

    private static URI uri(String url) {
        try {
            return new URI(url);
        } catch (URISyntaxException e) {
            // The exception's message repeats the whole address.
            throw new IllegalArgumentException(
                    "database address is not a URI: "
                            + e.getReason()
                            + ", got "
                            + masked(url)
                            + " (write special characters of a password as %XX)");
        }
    }

    private static void postgresAddress(URI uri, HikariConfig config) {
        if (uri.getHost() == null || uri.getPath() == null || uri.getPath().length() < 2) {
            throw new IllegalArgumentException(
                    "database address must name a host and a database: postgres://host/name");
        }
        String port = uri.getPort() < 0 ? "" : ":" + uri.getPort();
        String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
        config.setJdbcUrl("jdbc:postgresql://" + uri.getHost() + port + uri.getRawPath() + query);
        if (uri.getRawUserInfo() != null) {
            String[] user = uri.getRawUserInfo().split(":", 2);
            config.setUsername(decode(user[0]));
            config.setPassword(user.length == 2 ? decode(user[1]) : null);
        }
    }

    /** User info has percent escapes, but a plus sign in it is literal. */
    private static String decode(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    private static Throwable root(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }
}
