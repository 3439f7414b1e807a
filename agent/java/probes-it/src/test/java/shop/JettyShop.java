package shop;

import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A Jetty 12 server without servlets. */
public final class JettyShop extends Handler.Abstract {
    public static void main(String[] arguments) throws Exception {
        Server server = new Server(0);
        server.setHandler(new JettyShop());
        server.start();
        System.out.println("PORT " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        String path = Request.getPathInContext(request);
        if (path.startsWith("/unknown")) {
            return false;
        }
        if (path.equals("/broken")) {
            throw new IllegalStateException("no stock");
        }
        if (path.startsWith("/later")) {
            new Thread(() -> later(path, response, callback)).start();
            return true;
        }
        response.setStatus(path.equals("/busy") ? 503 : 200);
        response.write(
                true, ByteBuffer.wrap(answer(path).getBytes(StandardCharsets.UTF_8)), callback);
        return true;
    }

    /** Answers after the handler has returned. */
    private static void later(String path, Response response, Callback callback) {
        try {
            Thread.sleep(250);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        if (path.endsWith("/broken")) {
            callback.failed(new IllegalStateException("no lamp"));
            return;
        }
        response.setStatus(path.endsWith("/missing") ? 404 : 201);
        response.write(true, ByteBuffer.allocate(10), callback);
    }

    private static String answer(String path) {
        return "you asked for " + path;
    }
}
