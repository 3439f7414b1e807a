package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import java.lang.ref.WeakReference;

/**
 * Requests that come in: the outermost one of a thread is a call of kind http-server, the root of
 * its trace here.
 */
public final class HttpServer {
    /** Routes of one process; more than this many are an attack or a naming fault. */
    private static final int ROUTES_MAX = 1 << 10;

    private static final int FAILED_FROM = 500;

    private static final Names NAMES = new Names(Operations.HTTP_SERVER, ROUTES_MAX);

    private static volatile String[] requestIdHeaders = {"X-Request-Id"};

    /** The server that was looked at last, and whether it runs servlets. */
    private static volatile Looked looked = new Looked(null, false);

    private HttpServer() {}

    private static final class Looked extends WeakReference<Object> {
        final boolean hasServlets;

        Looked(Object server, boolean hasServlets) {
            super(server);
            this.hasServlets = hasServlets;
        }
    }

    /** Names of the header fields that may carry the id of a request, the most important first. */
    public static String[] requestIdHeaders() {
        return requestIdHeaders;
    }

    public static void requestIdHeaders(String[] names) {
        requestIdHeaders = names;
    }

    /**
     * A request begins. {@link Outermost#enter} was true for it.
     *
     * @param method as sent
     * @param prefix what goes before {@code route}, for example a context path; null for none
     * @param route the pattern that the server matched; null if it has none, then it is guessed
     *     from {@code path}
     * @param path as sent, without the query
     * @param traceparent the header, valid or not, or null
     * @param requestId the id that came with the request, or null
     * @return the call's token
     */
    public static int enter(
            String method,
            String prefix,
            String route,
            String path,
            String traceparent,
            String requestId) {
        StringBuilder name = Outermost.here().text;
        name.setLength(0);
        name.append(HttpMethods.known(method)).append(' ');
        int prefixLength = name.length();
        if (route == null) {
            Route.append(name, path);
        } else {
            name.append(prefix == null ? "" : prefix).append(route);
        }
        int operation = NAMES.operation(name, prefixLength);
        // Attached even when null: a request does not belong to what happened to start this thread.
        Context before = Recorder.attach(Context.parse(traceparent));
        int call = Recorder.enter(operation);
        try {
            Recorder.detach(before);
            Recorder.attribute(call, "http.path", path);
            Recorder.attribute(call, "request.id", requestId);
        } catch (Throwable e) {
            // Out of stack or memory: the call is open, so its token must get out.
        }
        return call;
    }

    /**
     * The request was answered, or will be by another thread.
     *
     * @param call what {@link #enter} answered, or {@link Outermost#INSIDE}; 0, which inlined
     *     advice has after an exception, leaves without a record
     * @param status 0 if it is not known yet
     */
    public static void exit(int call, int status, Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.HTTP_SERVER);
        // An exception that reaches the server becomes its answer 500.
        int told = thrown != null && status < FAILED_FROM ? FAILED_FROM : status;
        if (told > 0) {
            Recorder.attribute(call, "http.status", told);
        }
        if (told >= FAILED_FROM) {
            Recorder.exitFailed(call, thrown);
        } else {
            Recorder.exit(call);
        }
    }

    /**
     * @return null for the patterns that match everything and so tell nothing
     */
    public static String route(String pattern) {
        boolean isAny =
                pattern == null || pattern.isEmpty() || pattern.equals("/") || pattern.equals("/*");
        return isAny ? null : pattern.charAt(0) == '/' ? pattern : '/' + pattern;
    }

    /**
     * Whether {@code server} runs servlets, which know their route: 1 yes, 0 no, -1 nobody has
     * looked yet.
     */
    public static int servlets(Object server) {
        Looked last = looked;
        return last.get() != server ? -1 : last.hasServlets ? 1 : 0;
    }

    public static void learnServlets(Object server, boolean hasServlets) {
        looked = new Looked(server, hasServlets);
    }

    /** Whether objects of this class hand requests to servlets. */
    public static boolean isServletHandler(Class<?> type) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            if (at.getName().endsWith(".ServletContextHandler")) {
                return true;
            }
        }
        return false;
    }
}
