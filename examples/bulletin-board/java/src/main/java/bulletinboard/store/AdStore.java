package bulletinboard.store;

import bulletinboard.model.Advertisement;
import bulletinboard.model.Draft;
import bulletinboard.model.Page;
import bulletinboard.model.Statistics;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

import javax.sql.DataSource;

/**
 * The only table, in SQL that both H2 and PostgreSQL support. Before: {@code service/Board}. After:
 * the database.
 */
public final class AdStore {
    private static final String COLUMNS = "id, title, text, contact, price_cents, created";
    private static final String LIST =
            "select " + COLUMNS + " from advertisement order by id desc limit ? offset ?";
    private static final String SEARCH =
            "select "
                    + COLUMNS
                    + " from advertisement"
                    + " where lower(title) like ? escape '!' or lower(text) like ? escape '!'"
                    + " order by id desc limit ? offset ?";
    private static final String FIND = "select " + COLUMNS + " from advertisement where id = ?";
    private static final String INSERT =
            "insert into advertisement (title, text, contact, price_cents, created) values (?, ?,"
                + " ?, ?, ?)";
    private static final String UPDATE =
            "update advertisement set title = ?, text = ?, contact = ?, price_cents = ? where id ="
                + " ?";
    private static final String DELETE = "delete from advertisement where id = ?";
    private static final String STATISTICS =
            "select count(*), coalesce(min(price_cents), 0), coalesce(max(price_cents), 0),"
                + " coalesce(avg(cast(price_cents as double precision)), 0), min(created),"
                + " max(created) from advertisement";

    private final DataSource pool;

    public AdStore(DataSource pool) {
        this.pool = pool;
    }

    public List<Advertisement> list(Page page) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(LIST)) {
            statement.setInt(1, page.size());
            statement.setLong(2, page.offset());
            return readRows(statement);
        }
    }

    public List<Advertisement> search(String word, Page page) throws SQLException {
        String pattern = likePattern(word);
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(SEARCH)) {
            statement.setString(1, pattern);
            statement.setString(2, pattern);
            statement.setInt(3, page.size());
            statement.setLong(4, page.offset());
            return readRows(statement);
        }
    }

    public Optional<Advertisement> find(long id) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(FIND)) {
            statement.setLong(1, id);
            return readRows(statement).stream().findFirst();
        }
    }

    /**
     * @return the id assigned by the database
     */
    public long insert(Draft draft, Instant created) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement(INSERT, new String[] {"id"})) {
            bindDraft(statement, draft);
            statement.setObject(5, created.atOffset(ZoneOffset.UTC));
            statement.executeUpdate();
            try (ResultSet keys = statement.getGeneratedKeys()) {
                if (!keys.next()) {
                    throw new SQLException("the database returned no id for a new advertisement");
                }
                return keys.getLong(1);
            }
        }
    }

    /** In one transaction. */
    public void insertAll(List<Draft> drafts, Instant created) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(INSERT)) {
            connection.setAutoCommit(false);
            for (Draft draft : drafts) {
                bindDraft(statement, draft);
                statement.setObject(5, created.atOffset(ZoneOffset.UTC));
                statement.addBatch();
            }
            statement.executeBatch();
            connection.commit();
        }
    }

    /**
     * @return false if the id does not exist
     */
    public boolean update(long id, Draft draft) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(UPDATE)) {
            bindDraft(statement, draft);
            statement.setLong(5, id);
            return statement.executeUpdate() == 1;
        }
    }

    /**
     * @return false if the id does not exist
     */
    public boolean delete(long id) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(DELETE)) {
            statement.setLong(1, id);
            return statement.executeUpdate() == 1;
        }
    }

    public Statistics statistics() throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(STATISTICS);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return new Statistics(
                    row.getLong(1),
                    row.getLong(2),
                    row.getLong(3),
                    row.getDouble(4),
                    instant(row, 5),
                    instant(row, 6));
        }
    }

    private static void bindDraft(PreparedStatement statement, Draft draft) throws SQLException {
        statement.setString(1, draft.title());
        statement.setString(2, draft.text());
        statement.setString(3, draft.contact());
        statement.setLong(4, draft.priceCents());
    }

    private static List<Advertisement> readRows(PreparedStatement statement) throws SQLException {
        List<Advertisement> found = new ArrayList<>();
        try (ResultSet row = statement.executeQuery()) {
            while (row.next()) {
                found.add(
                        new Advertisement(
                                row.getLong(1),
                                row.getString(2),
                                row.getString(3),
                                row.getString(4),
                                row.getLong(5),
                                row.getObject(6, OffsetDateTime.class).toInstant()));
            }
        }
        return found;
    }

    private static Instant instant(ResultSet row, int column) throws SQLException {
        OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
        return time == null ? null : time.toInstant();
    }

    private static String likePattern(String word) {
        String literal =
                word.toLowerCase(Locale.ROOT)
                        .replace("!", "!!")
                        .replace("%", "!%")
                        .replace("_", "!_");
        return "%" + literal + "%";
    }
}
