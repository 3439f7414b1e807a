package bulletinboard.web;

import bulletinboard.service.Board;
import bulletinboard.service.InvalidInputException;
import bulletinboard.service.NoSuchAdvertisementException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Map;

/**
 * Entry point of requests: answers in plain text, and maps every failure to a status. Before:
 * Jetty. After: {@code web/Routes}, {@code web/AdActions}.
 */
public final class BoardHandler extends Handler.Abstract {
    private static final System.Logger LOG = System.getLogger(BoardHandler.class.getName());

    private final Routes routes;

    public BoardHandler(Board board) {
        this.routes = new Routes(new AdActions(board));
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        send(answer(request), request, response, callback);
        return true;
    }

    private Answer answer(Request request) {
        String path = Request.getPathInContext(request);
        try {
            return routes.find(request.getMethod(), path).answer(new Call(request, path));
        } catch (RefusedException e) {
            return e.answer();
        } catch (InvalidInputException e) {
            return Answer.error(400, e.getMessage());
        } catch (NoSuchAdvertisementException e) {
            return Answer.error(404, e.getMessage());
        } catch (UncheckedIOException e) {
            return Answer.error(400, "the body could not be read: " + e.getCause().getMessage());
        } catch (SQLTransientConnectionException e) {
            return new Answer(
                    503,
                    "no free connection to the database\n",
                    Map.of(HttpHeader.RETRY_AFTER.asString(), "1"));
        } catch (SQLException | RuntimeException e) {
            LOG.log(System.Logger.Level.ERROR, request.getMethod() + " " + path + " failed", e);
            return Answer.error(500, "internal error, see the log");
        }
    }

    private static void send(Answer answer, Request request, Response response, Callback callback) {
        byte[] body = answer.text().getBytes(StandardCharsets.UTF_8);
        response.setStatus(answer.status());
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain; charset=utf-8");
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
        answer.headers().forEach((name, value) -> response.getHeaders().put(name, value));
        boolean head = request.getMethod().equals("HEAD");
        response.write(true, head ? null : ByteBuffer.wrap(body), callback);
    }
}
