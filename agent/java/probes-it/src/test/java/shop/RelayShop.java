package shop;

import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A server that calls another server before it answers. It uses both HTTP clients of the JDK, on
 * the thread of the request and on other threads. The argument is the address of the other server.
 */
public final class RelayShop extends Handler.Abstract {
    private final HttpClient client = HttpClient.newHttpClient();
    private final ExecutorService pool = Executors.newFixedThreadPool(2);
    private final String address;

    private RelayShop(String address) {
        this.address = address;
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server(0);
        server.setHandler(new RelayShop(arguments[0]));
        server.start();
        System.out.println("PORT " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        String path = Request.getPathInContext(request);
        send(path + "/send");
        client.sendAsync(get(path + "/async"), HttpResponse.BodyHandlers.ofString()).get();
        pool.submit(
                        () -> {
                            send(path + "/task");
                            return null;
                        })
                .get();
        CompletableFuture.runAsync(() -> open(path + "/url")).get();
        Thread thread = new Thread(() -> open(path + "/thread"));
        thread.start();
        thread.join();
        callback.succeeded();
        return true;
    }

    private HttpRequest get(String path) {
        return HttpRequest.newBuilder(URI.create(address + path)).build();
    }

    void send(String path) throws IOException, InterruptedException {
        client.send(get(path), HttpResponse.BodyHandlers.ofString());
    }

    void open(String path) {
        try {
            HttpURLConnection connection =
                    (HttpURLConnection) URI.create(address + path).toURL().openConnection();
            connection.getResponseCode();
            connection.getInputStream().close();
        } catch (IOException e) {
            throw new IllegalStateException(path, e);
        }
    }
}
