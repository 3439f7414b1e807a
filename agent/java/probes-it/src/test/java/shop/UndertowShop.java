package shop;

import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.servlet.Servlets;
import io.undertow.servlet.api.DeploymentInfo;
import io.undertow.servlet.api.DeploymentManager;

import java.io.IOException;
import java.net.InetSocketAddress;

import javax.servlet.ServletException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** Two servlets of {@code javax.servlet}, in Undertow. */
public final class UndertowShop extends HttpServlet {
    private static final long serialVersionUID = 1L;

    public static void main(String[] arguments) throws Exception {
        DeploymentInfo shop =
                Servlets.deployment()
                        .setClassLoader(UndertowShop.class.getClassLoader())
                        .setContextPath("/shop")
                        .setDeploymentName("shop")
                        .addServlets(
                                Servlets.servlet("shop", UndertowShop.class).addMapping("/ads/*"),
                                Servlets.servlet("later", LaterJavax.class)
                                        .addMapping("/later/*")
                                        .setAsyncSupported(true));
        DeploymentManager manager = Servlets.defaultContainer().addDeployment(shop);
        manager.deploy();
        Undertow server =
                Undertow.builder()
                        .addHttpListener(0, "127.0.0.1")
                        .setHandler(Handlers.path().addPrefixPath("/shop", manager.start()))
                        .build();
        server.start();
        System.out.println(
                "PORT "
                        + ((InetSocketAddress) server.getListenerInfo().get(0).getAddress())
                                .getPort());
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        if ("/broken".equals(request.getPathInfo())) {
            throw new ServletException("no stock");
        }
        response.getWriter().println("you asked for " + request.getRequestURI());
    }
}
