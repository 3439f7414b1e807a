package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;

/**
 * The current request of a thread: one object per thread, reused, so that a request that is
 * answered at once allocates none.
 */
final class ServerRequest {
    /** No route, only the path. */
    static final int UNKNOWN = 0;

    /** A pattern matched by the server; a framework behind it may have a better one. */
    static final int MAPPED = 1;

    /** A route of the framework. */
    static final int ROUTED = 2;

    private String method;
    private String path;
    private int known;

    /** Token of the call; 0 if the thread works for a request that another thread began. */
    private int call;

    /** Set if the request may be answered later, or the thread works for such a request. */
    private LaterAnswer later;

    /** The work is an error page, whose route is not that of the request. */
    private boolean isErrorPage;

    /** The last object of the server that this thread has closed. */
    private Object closed;

    /** The thread's context before it worked for a request of another thread. */
    private Context before;

    /**
     * @return the initial operation
     */
    int begin(String method, String prefix, String route, String path) {
        this.method = method;
        this.path = path;
        this.known = route == null ? UNKNOWN : MAPPED;
        this.call = 0;
        this.later = null;
        this.closed = null;
        return route == null
                ? ServerNames.early(method, path)
                : ServerNames.routed(method, prefix, route);
    }

    void began(int call) {
        this.call = call;
    }

    void closed(Object by) {
        closed = by;
    }

    boolean hasClosed(Object by) {
        return closed == by;
    }

    void resume(LaterAnswer answer, boolean isError) {
        call = 0;
        isErrorPage = isError;
        later = answer;
        before = Recorder.attach(answer.context());
    }

    void pause(Throwable thrown) {
        Recorder.detach(before);
        if (thrown != null) {
            later.failed(thrown);
        }
        forget();
    }

    /** A framework matched a route; the first one counts. */
    void routed(String prefix, String route) {
        if (call == 0) {
            if (later != null && !isErrorPage) {
                later.routed(prefix, route);
            }
        } else if (known != ROUTED) {
            known = ROUTED;
            Recorder.rename(call, ServerNames.routed(method, prefix, route));
        }
    }

    /**
     * Marks the request as one that may be answered later.
     *
     * @return the pending answer; null if there was no room to record the request
     */
    LaterAnswer later() {
        if (later == null && (call > 0 || call < 0 && isTraceLeftOut())) {
            later = new LaterAnswer(method, path);
        }
        return later;
    }

    private static boolean isTraceLeftOut() {
        Context context = Recorder.context();
        return context != null && !context.isSampled();
    }

    boolean isLater() {
        return later != null;
    }

    /**
     * The thread leaves the request before it is answered.
     *
     * @return false if the thread must end it
     */
    boolean leave(Throwable thrown) {
        if (thrown != null) {
            later.abandon(); // the server answers at once
            return false;
        }
        return later.leave(call, known);
    }

    /** The status of a request that was answered before the thread left it. */
    int statusOr(int status) {
        if (later == null) {
            return status;
        }
        if (!later.hasEnded()) {
            Recorder.attribute(call, "http.async", "end unknown");
            return status;
        }
        return later.status();
    }

    /** Sets the final name when the thread ends the request. */
    void name(int status) {
        if (known == UNKNOWN) {
            Recorder.rename(call, ServerNames.unrouted(method, path, status));
        }
    }

    void forget() {
        method = null;
        path = null;
        later = null;
        closed = null;
        before = null;
        call = 0;
    }
}
