package bulletinboard;

import bulletinboard.service.Board;
import bulletinboard.store.AdStore;
import bulletinboard.store.Database;
import bulletinboard.store.SeedAds;
import bulletinboard.web.BoardHandler;

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ErrorHandler;
import org.eclipse.jetty.server.handler.GracefulHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

import java.io.InputStream;
import java.sql.SQLException;
import java.time.Clock;
import java.util.List;
import java.util.logging.LogManager;

/** Starts the database, then the HTTP server. */
public final class BulletinBoard implements AutoCloseable {
    private static final long STOP_MS_MAX = 5_000;

    private final Database database;
    private final Server server;

    private BulletinBoard(Database database, Server server) {
        this.database = database;
        this.server = server;
    }

    public static void main(String[] arguments) {
        try (InputStream logging = BulletinBoard.class.getResourceAsStream("/logging.properties")) {
            LogManager.getLogManager().readConfiguration(logging);
            Options options = Options.parse(List.of(arguments), System.getenv());
            if (options.help()) {
                System.out.print(Options.HELP);
                return;
            }
            BulletinBoard board = start(options);
            Runtime.getRuntime().addShutdownHook(new Thread(board::close, "shutdown"));
            System.out.println(
                    "bulletin board: listening on http://"
                            + options.host()
                            + ":"
                            + board.port()
                            + ", pool "
                            + options.pool()
                            + ", threads "
                            + options.threads());
        } catch (IllegalArgumentException e) {
            System.err.println("bulletin board: " + e.getMessage() + " (see --help)");
            System.exit(2);
        } catch (Exception e) {
            System.err.println("bulletin board: cannot start: " + e.getMessage());
            System.exit(1);
        }
    }

    /** @throws Exception from Jetty or the database, after everything is closed */
    static BulletinBoard start(Options options) throws Exception {
        Database database = Database.open(options.database(), options.pool());
        BulletinBoard started = new BulletinBoard(database, new Server(threads(options)));
        try {
            started.listen(options);
        } catch (Exception e) {
            started.close();
            throw e;
        }
        return started;
    }

    /** The actual port, also if port 0 was requested. */
    int port() {
        return ((ServerConnector) server.getConnectors()[0]).getLocalPort();
    }

    /** Finishes open requests, for at most {@link #STOP_MS_MAX}, then closes the database. */
    @Override
    public void close() {
        try {
            server.stop();
        } catch (Exception e) {
            System.err.println("bulletin board: stopping: " + e.getMessage());
        } finally {
            database.close();
        }
    }

    private void listen(Options options) throws Exception {
        ServerConnector connector = new ServerConnector(server);
        connector.setHost(options.host());
        connector.setPort(options.port());
        server.addConnector(connector);
        GracefulHandler graceful = new GracefulHandler();
        graceful.setHandler(new BoardHandler(board(options)));
        server.setHandler(graceful);
        server.setStopTimeout(STOP_MS_MAX);
        ErrorHandler errors = new ErrorHandler();
        errors.setDefaultResponseMimeType("text/plain");
        server.setErrorHandler(errors);
        server.start();
    }

    private Board board(Options options) throws SQLException {
        Clock clock = Clock.systemUTC();
        AdStore store = new AdStore(database.pool());
        SeedAds.fill(store, options.seedAds(), clock.instant());
        return new Board(store, clock);
    }

    private static QueuedThreadPool threads(Options options) {
        QueuedThreadPool threads = new QueuedThreadPool(options.threads());
        threads.setName("http");
        return threads;
    }
}
