package shop;

import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The server of the JDK, with handlers that answer at once, later, or not at all. */
public final class JdkServerShop {
    private static final ExecutorService WORKERS = Executors.newFixedThreadPool(2);
    private static final long LATER_MS = 400;

    private JdkServerShop() {}

    public static void main(String[] arguments) throws Exception {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer server = HttpServer.create(any, 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", JdkServerShop::root);
        HttpContext ads = server.createContext("/ads", JdkServerShop::ads);
        ads.getFilters().add(new Passing());
        server.start();
        System.out.println("PORT " + server.getAddress().getPort());
    }

    private static final class Passing extends Filter {
        @Override
        public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
            chain.doFilter(exchange);
        }

        @Override
        public String description() {
            return "a filter of the program";
        }
    }

    static void root(HttpExchange exchange) throws IOException {
        boolean isRoot = exchange.getRequestURI().getPath().equals("/");
        send(exchange, isRoot ? 200 : 404);
    }

    static void ads(HttpExchange exchange) throws IOException {
        String query = exchange.getRequestURI().getQuery();
        switch (query == null ? "" : query) {
            case "what=later":
                WORKERS.execute(() -> answer(exchange, 201));
                break;
            case "what=bad":
                WORKERS.execute(() -> answer(exchange, 503));
                break;
            case "what=stream":
                WORKERS.execute(() -> stream(exchange));
                break;
            case "what=empty":
                WORKERS.execute(() -> empty(exchange));
                break;
            case "what=throws":
                throw new IllegalStateException("no stock");
            case "what=close":
                exchange.close();
                break;
            case "what=close-later":
                WORKERS.execute(() -> close(exchange));
                break;
            default:
                send(exchange, 200);
        }
    }

    private static void send(HttpExchange exchange, int status) throws IOException {
        exchange.sendResponseHeaders(status, 2);
        exchange.getResponseBody().write(new byte[] {'o', 'k'});
        exchange.close();
    }

    static void answer(HttpExchange exchange, int status) {
        try {
            Thread.sleep(LATER_MS);
            send(exchange, status);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Sends the headers after the handler has returned, and the end of the body late, without
     * {@code exchange.close()}.
     */
    static void stream(HttpExchange exchange) {
        try (OutputStream body = body(exchange)) {
            body.write('o');
            body.flush();
            Thread.sleep(LATER_MS);
            body.write('k');
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static OutputStream body(HttpExchange exchange)
            throws IOException, InterruptedException {
        Thread.sleep(50); // the handler has returned by then
        OutputStream body = exchange.getResponseBody();
        exchange.sendResponseHeaders(200, 0);
        return body;
    }

    static void empty(HttpExchange exchange) {
        try {
            Thread.sleep(LATER_MS);
            exchange.sendResponseHeaders(204, -1);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void close(HttpExchange exchange) {
        try {
            Thread.sleep(LATER_MS);
            exchange.close();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
