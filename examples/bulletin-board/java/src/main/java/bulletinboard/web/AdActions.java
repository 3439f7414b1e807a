package bulletinboard.web;

import bulletinboard.model.Page;
import bulletinboard.service.Board;

import org.eclipse.jetty.http.HttpHeader;

import java.sql.SQLException;
import java.util.Map;
import java.util.Set;

/**
 * One method per endpoint: reads the parameters, returns an {@link Answer}. Before: {@code
 * web/Routes}. After: {@code service/Board}.
 */
final class AdActions {
    private static final Set<String> NONE = Set.of();
    private static final Set<String> PAGED = Set.of("page", "size");
    private static final Set<String> SEARCHED = Set.of("word", "page", "size");
    private static final Set<String> DRAFT = Set.of("title", "text", "contact", "price");

    private final Board board;

    AdActions(Board board) {
        this.board = board;
    }

    Answer help(Call call) {
        call.query(NONE);
        return Answer.ok(AdText.HELP);
    }

    Answer list(Call call) throws SQLException {
        Page page = call.query(PAGED).page();
        return Answer.ok(AdText.list(board.list(page), page));
    }

    Answer search(Call call) throws SQLException {
        Parameters parameters = call.query(SEARCHED);
        Page page = parameters.page();
        return Answer.ok(AdText.list(board.search(parameters.word(), page), page));
    }

    Answer read(Call call) throws SQLException {
        call.query(NONE);
        return Answer.ok(AdText.full(board.read(call.id())));
    }

    Answer post(Call call) throws SQLException {
        long id = board.post(call.form(DRAFT).draft());
        return new Answer(
                201, "posted #" + id + "\n", Map.of(HttpHeader.LOCATION.asString(), "/ads/" + id));
    }

    Answer update(Call call) throws SQLException {
        long id = call.id();
        board.update(id, call.form(DRAFT).draft());
        return Answer.ok("updated #" + id + "\n");
    }

    Answer delete(Call call) throws SQLException {
        call.query(NONE);
        long id = call.id();
        board.delete(id);
        return Answer.ok("deleted #" + id + "\n");
    }

    Answer statistics(Call call) throws SQLException {
        call.query(NONE);
        return Answer.ok(AdText.statistics(board.statistics()));
    }
}
