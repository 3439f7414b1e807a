package bulletinboard.service;

import bulletinboard.model.Advertisement;
import bulletinboard.model.Draft;
import bulletinboard.model.Page;
import bulletinboard.model.Statistics;
import bulletinboard.store.AdStore;

import java.sql.SQLException;
import java.time.Clock;
import java.util.List;

/**
 * The operations of the board. Before: {@code web/AdActions}. After: {@code store/AdStore}.
 */
public final class Board {
    private static final BoardEvents EVENTS = BoardEventsRecords.get();

    private final AdStore store;
    private final Clock clock;

    public Board(AdStore store, Clock clock) {
        this.store = store;
        this.clock = clock;
    }

    /** Newest first. */
    public List<Advertisement> list(Page page) throws SQLException {
        return store.list(page);
    }

    /** Advertisements whose title or text contains {@code word}, ignoring case; newest first. */
    public List<Advertisement> search(String word, Page page) throws SQLException {
        return store.search(word, page);
    }

    public Advertisement read(long id) throws SQLException {
        return store.find(id).orElseThrow(() -> new NoSuchAdvertisementException(id));
    }

    /**
     * @return the id of the new advertisement
     */
    public long post(Draft draft) throws SQLException {
        long id = store.insert(DraftCheck.check(draft), clock.instant());
        EVENTS.posted(id, draft.title(), draft.priceCents());
        return id;
    }

    public void update(long id, Draft draft) throws SQLException {
        if (!store.update(id, DraftCheck.check(draft))) {
            throw new NoSuchAdvertisementException(id);
        }
    }

    public void delete(long id) throws SQLException {
        if (!store.delete(id)) {
            throw new NoSuchAdvertisementException(id);
        }
    }

    public Statistics statistics() throws SQLException {
        return store.statistics();
    }
}
