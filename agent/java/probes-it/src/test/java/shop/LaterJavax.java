package shop;

import java.io.IOException;

import javax.servlet.AsyncContext;
import javax.servlet.ServletException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/**
 * Answers at once or later. The parameter {@code what} selects the way in which {@code
 * javax.servlet} is used. {@code LaterJakarta} is the same class for {@code jakarta.servlet}.
 */
public final class LaterJavax extends HttpServlet {
    private static final long serialVersionUID = 1L;

    /** Shortest duration of a request that is answered later, ms. */
    private static final int LATER_MS = 250;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        String what = request.getParameter("what");
        if (what.equals("sync")) {
            response.setStatus(202);
            return;
        }
        Object before = request.getAttribute("before");
        if (what.equals("twice") && before != null) {
            later(request.startAsync(), "complete");
            return;
        }
        if (before != null) {
            done(request.getParameter("then"), response);
            return;
        }
        request.setAttribute("before", what);
        AsyncContext context = request.startAsync();
        switch (what) {
            case "timeout" -> context.setTimeout(LATER_MS);
            case "throws" -> throw new ServletException("no stock");
            case "at-once" -> {
                response.setStatus(203);
                context.complete();
            }
            case "dispatched-at-once" -> context.dispatch();
            default -> later(context, what);
        }
    }

    /** Answers a request that was dispatched again. */
    void done(String then, HttpServletResponse response) throws ServletException {
        if ("fail".equals(then)) {
            throw new ServletException("no lamp");
        }
        response.setStatus(201);
    }

    private static void later(AsyncContext context, String what) {
        Thread thread = new Thread(() -> answer(context, what), "answers-" + what);
        thread.setDaemon(true);
        thread.start();
    }

    private static void answer(AsyncContext context, String what) {
        try {
            Thread.sleep(LATER_MS);
            HttpServletResponse response = (HttpServletResponse) context.getResponse();
            switch (what) {
                case "complete" -> {
                    response.setStatus(201);
                    context.complete();
                }
                case "missing" -> {
                    response.setStatus(404);
                    context.complete();
                }
                case "leaves" -> flood(context, response);
                default -> context.dispatch();
            }
        } catch (InterruptedException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Writes until the client closes the connection. */
    private static void flood(AsyncContext context, HttpServletResponse response)
            throws IOException {
        try {
            while (true) {
                response.getOutputStream().write(new byte[65_536]);
                response.getOutputStream().flush();
            }
        } finally {
            context.complete();
        }
    }
}
