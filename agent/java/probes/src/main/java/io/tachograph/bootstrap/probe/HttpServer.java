package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;

import java.lang.ref.WeakReference;

/**
 * Incoming requests. The outermost request of a thread is a call of kind http-server, the root of
 * its trace in this process unless a recorded call encloses it.
 */
public final class HttpServer {
    private static final int FAILED_FROM = 500;

    /** Token of a request that this thread continues; see {@link #resume}. */
    private static final int RESUMED = Integer.MIN_VALUE + 1;

    private static volatile String[] requestIdHeaders = {"X-Request-Id"};

    /** The server that was checked last, and whether it has servlets. */
    private static volatile Looked looked = new Looked(null, false);

    private HttpServer() {}

    private static final class Looked extends WeakReference<Object> {
        final boolean hasServlets;

        Looked(Object server, boolean hasServlets) {
            super(server);
            this.hasServlets = hasServlets;
        }
    }

    /** Header fields that may have the id of a request, in order of precedence. */
    public static String[] requestIdHeaders() {
        return requestIdHeaders;
    }

    public static void requestIdHeaders(String[] names) {
        requestIdHeaders = names;
    }

    /**
     * Begins a request. The caller must have called {@link Outermost#enter} with the result true.
     *
     * @param method the method as sent
     * @param prefix text before {@code route}, for example a context path; null if there is none
     * @param route the pattern that the server matched; if null, a route is derived from {@code
     *     path}
     * @param path the path as sent, without the query
     * @param traceparent the header, valid or not, or null
     * @param requestId the id that came with the request, or null
     * @return the token of the call
     */
    public static int enter(
            String method,
            String prefix,
            String route,
            String path,
            String traceparent,
            String requestId) {
        ServerRequest request = Outermost.here().request;
        int operation = request.begin(method, prefix, route, path);
        // Even a null context is attached, because a request does not belong to the call that
        // started this thread.
        Context before = Recorder.attach(Context.parse(traceparent));
        int call = Recorder.enter(operation);
        request.began(call);
        try {
            Recorder.detach(before);
            Recorder.attribute(call, "http.path", path);
            Recorder.attribute(call, "request.id", requestId);
        } catch (Throwable e) {
            // Stack overflow or out of memory: the call is open, so its token must be returned.
        }
        return call;
    }

    /**
     * Continues a request, which another thread may have begun, on the current thread.
     *
     * @param request as in {@link LaterAnswer#comesBackAs}
     * @param isError true for an error page
     * @return the value for {@link #exit}
     */
    public static int resume(Object request, boolean isError) {
        LaterAnswer answer = LaterAnswer.of(request);
        if (answer == null || !Outermost.enter(Outermost.HTTP_SERVER)) {
            return Outermost.INSIDE;
        }
        Outermost.here().request.resume(answer, isError);
        return RESUMED;
    }

    /**
     * Marks the request of the current thread as one that may be answered later.
     *
     * @return null if the thread has no request, or its request was dropped
     */
    public static LaterAnswer later() {
        Outermost here = Outermost.here();
        return here.isOpen(Outermost.HTTP_SERVER) ? here.request.later() : null;
    }

    /**
     * Sets the status when an answer is sent. The calling thread may differ from the thread that
     * received the request.
     *
     * @param by as in {@link LaterAnswer#comesBackAs}
     * @param isWhole true if no body follows
     */
    public static void answers(Object by, int status, boolean isWhole) {
        LaterAnswer answer = LaterAnswer.of(by);
        if (answer != null) {
            answer.answers(status);
            if (isWhole) {
                answer.end();
            }
        }
    }

    /**
     * Called when the server sends nothing more for a request. A pending request ends.
     *
     * @param by as in {@link LaterAnswer#comesBackAs}
     */
    public static void closed(Object by) {
        Outermost here = Outermost.here();
        if (here.isOpen(Outermost.HTTP_SERVER)) {
            here.request.closed(by);
        }
        LaterAnswer answer = LaterAnswer.of(by);
        if (answer != null) {
            answer.end();
        }
    }

    /**
     * Ends a pending request when the stream of the answer's body is closed after the status was
     * sent.
     */
    public static void written(Object body) {
        LaterAnswer answer = LaterAnswer.of(body);
        if (answer != null && answer.isGiven()) {
            answer.end();
        }
    }

    /** True if the last call of {@link #closed} during the thread's request was for {@code by}. */
    public static boolean isClosed(Object by) {
        return Outermost.here().request.hasClosed(by);
    }

    /**
     * Sets the route that a framework has matched for the thread's request.
     *
     * @param prefix text before the route, for example a context path; null if there is none
     * @param pattern the route; ignored if it is empty or matches everything
     */
    public static void routed(String prefix, String pattern) {
        Outermost here = Outermost.here();
        String route = route(pattern);
        if (route != null && here.isOpen(Outermost.HTTP_SERVER)) {
            here.request.routed(prefix, route);
        }
    }

    /**
     * Called when the thread ends its work for the request: the request is answered, or another
     * thread will answer it.
     *
     * @param call the result of {@link #enter} or {@link #resume}, or {@link Outermost#INSIDE}. If
     *     it is 0, nothing is recorded; the advice passes 0 if its code at the entry threw
     * @param status 0 if not yet known
     */
    public static void exit(int call, int status, Throwable thrown) {
        exit(call, status, thrown, true);
    }

    /** As {@link #exit}, for a server that sends no answer when an exception reaches it. */
    public static void exitAsSent(int call, int status, Throwable thrown) {
        exit(call, status, thrown, false);
    }

    private static void exit(int call, int status, Throwable thrown, boolean answersThrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.HTTP_SERVER);
        ServerRequest request = Outermost.here().request;
        if (call == 0) {
            request.forget();
            return;
        }
        if (call == RESUMED) {
            request.pause(thrown);
            return;
        }
        if (!request.isLater() || !request.leave(thrown)) {
            int told = request.statusOr(status);
            if (thrown != null && told < FAILED_FROM && answersThrown) {
                told = FAILED_FROM;
            }
            end(request, call, told, thrown);
        }
        request.forget();
    }

    private static void end(ServerRequest request, int call, int told, Throwable thrown) {
        request.name(told);
        if (told > 0) {
            Recorder.attribute(call, "http.status", told);
        }
        if (told >= FAILED_FROM || thrown != null) {
            Recorder.exitFailed(call, thrown);
        } else {
            Recorder.exit(call);
        }
    }

    /**
     * @return the pattern with a leading slash; null if there is none, or it matches everything
     */
    public static String route(String pattern) {
        boolean isAny =
                pattern == null
                        || pattern.isEmpty()
                        || pattern.equals("/")
                        || pattern.equals("/*")
                        || pattern.equals("/**");
        return isAny ? null : pattern.charAt(0) == '/' ? pattern : '/' + pattern;
    }

    /**
     * Returns whether {@code server} has servlets, which provide their route: 1 yes, 0 no, -1 if
     * another server or none was checked last.
     */
    public static int servlets(Object server) {
        Looked last = looked;
        return last.get() != server ? -1 : last.hasServlets ? 1 : 0;
    }

    public static void learnServlets(Object server, boolean hasServlets) {
        looked = new Looked(server, hasServlets);
    }

    /** True if objects of this class pass requests to servlets. */
    public static boolean isServletHandler(Class<?> type) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            if (at.getName().endsWith(".ServletContextHandler")) {
                return true;
            }
        }
        return false;
    }
}
