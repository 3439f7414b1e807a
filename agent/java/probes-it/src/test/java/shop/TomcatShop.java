package shop;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.ErrorPage;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

import java.io.IOException;
import java.nio.file.Files;

/**
 * A servlet in Tomcat, behind a filter. Depending on the path, it answers at once or later,
 * forwards the request to itself, or fails.
 */
public final class TomcatShop extends HttpServlet {
    private static final long serialVersionUID = 1L;

    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setPort(0);
        Context context = tomcat.addContext("/shop", Files.createTempDirectory("docs").toString());
        Tomcat.addServlet(context, "shop", new TomcatShop()).setAsyncSupported(true);
        context.addServletMappingDecoded("/ads/*", "shop");
        context.addServletMappingDecoded("/", "shop");
        FilterDef filter = new FilterDef();
        filter.setFilterName("pass");
        filter.setFilter(new Pass());
        filter.setAsyncSupported("true");
        context.addFilterDef(filter);
        FilterMap everywhere = new FilterMap();
        everywhere.setFilterName("pass");
        everywhere.addURLPattern("/*");
        context.addFilterMap(everywhere);
        ErrorPage page = new ErrorPage();
        page.setErrorCode(500);
        page.setLocation("/ads/sorry");
        context.addErrorPage(page);
        tomcat.getConnector();
        tomcat.start();
        System.out.println("PORT " + tomcat.getConnector().getLocalPort());
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        switch (request.getPathInfo() == null ? request.getServletPath() : request.getPathInfo()) {
            case "/forward" -> request.getRequestDispatcher("/ads/7").forward(request, response);
            case "/broken" -> throw new ServletException("no stock");
            case "/missing" -> response.sendError(404);
            case "/later" -> later(request.startAsync());
            default -> response.getWriter().println("you asked for " + request.getRequestURI());
        }
    }

    private static void later(AsyncContext answer) {
        new Thread(
                        () -> {
                            try {
                                answer.getResponse().getWriter().println("here it is");
                            } catch (IOException e) {
                                throw new java.io.UncheckedIOException(e);
                            }
                            answer.complete();
                        })
                .start();
    }

    public static final class Pass implements Filter {
        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
        }
    }
}
