package shop;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import javax.sql.DataSource;

/** SQL over H2 and HikariCP: prepared and plain statements, batches, and failures. */
public final class JdbcShop {
    private final DataSource pool;

    private JdbcShop(DataSource pool) {
        this.pool = pool;
    }

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:shop");
        config.setMaximumPoolSize(2);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            JdbcShop shop = new JdbcShop(pool);
            shop.create();
            shop.insert();
            shop.read();
            shop.plain();
            shop.broken();
        }
    }

    void create() throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("create table ad (id int, title varchar(100))");
        }
    }

    void insert() throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement("insert into ad values (?, ?)")) {
            for (int i = 0; i < 3; i++) {
                statement.setInt(1, i);
                statement.setString(2, "title " + i);
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    void read() throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement("select title\n  from ad where id in (?, ?)")) {
            for (int i = 0; i < 2; i++) {
                statement.setInt(1, i);
                statement.setInt(2, i + 1);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                }
            }
        }
    }

    void plain() throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement
                    .executeQuery("select * from ad where id = 1 and title = 'it''s secret'")
                    .close();
            statement.executeUpdate("update ad set title = 'x' where id in (1, 2, 3)");
            statement.addBatch("delete from ad where id = 1");
            statement.addBatch("delete from ad where id = 2");
            statement.executeBatch();
        }
    }

    void broken() {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("select 1 from nothing");
        } catch (SQLException e) {
            // Expected: this is the case under test.
        }
        try (Connection connection = pool.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement("select cast(? as int)")) {
            statement.setString(1, "s3cret");
            statement.executeQuery().close();
        } catch (SQLException e) {
            // Expected: the message contains the value.
        }
    }
}
