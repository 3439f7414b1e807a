package shop;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Servlets in several versions of Jetty, each in its own class loader. The argument is the
 * directory of the libraries.
 */
public final class JettysShop {
    private JettysShop() {}

    public static void main(String[] arguments) throws Exception {
        Path libraries = Path.of(arguments[0]);
        StringBuilder ports = new StringBuilder();
        ports.append(start(libraries.resolve("jetty9"), "servlet", "LaterJavax")).append(',');
        ports.append(start(libraries.resolve("jetty11"), "servlet", "LaterJakarta")).append(',');
        ports.append(start(libraries.resolve("jetty12"), "ee10.servlet", "LaterJakarta"));
        System.out.println("PORTS " + ports + ".");
    }

    private static int start(Path jars, String api, String servlet) throws Exception {
        List<URL> urls = new ArrayList<>();
        urls.add(JettysShop.class.getProtectionDomain().getCodeSource().getLocation());
        try (DirectoryStream<Path> found = Files.newDirectoryStream(jars, "*.jar")) {
            for (Path jar : found) {
                urls.add(jar.toUri().toURL());
            }
        }
        ClassLoader loader =
                new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
        Thread.currentThread().setContextClassLoader(loader);
        String jetty = "org.eclipse.jetty.";
        Object server =
                loader.loadClass(jetty + "server.Server").getConstructor(int.class).newInstance(0);
        Class<?> contextType = loader.loadClass(jetty + api + ".ServletContextHandler");
        Object context = contextType.getConstructor().newInstance();
        contextType.getMethod("setContextPath", String.class).invoke(context, "/shop");
        Class<?> holderType = loader.loadClass(jetty + api + ".ServletHolder");
        Object holder =
                holderType
                        .getConstructor(Class.class)
                        .newInstance(loader.loadClass("shop." + servlet));
        holderType.getMethod("setAsyncSupported", boolean.class).invoke(holder, true);
        contextType
                .getMethod("addServlet", holderType, String.class)
                .invoke(context, holder, "/later/*");
        Class<?> handler = loader.loadClass(jetty + "server.Handler");
        server.getClass().getMethod("setHandler", handler).invoke(server, context);
        server.getClass().getMethod("start").invoke(server);
        Object connector =
                ((Object[]) server.getClass().getMethod("getConnectors").invoke(server))[0];
        return (int) connector.getClass().getMethod("getLocalPort").invoke(connector);
    }
}
