package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;

/**
 * The current request of a thread. Each thread reuses one object, so that a request that is
 * answered at once allocates nothing here.
 */
final class ServerRequest {
    /** No route is known, only the path. */
    static final int UNKNOWN = 0;

    /** The server matched a pattern. A framework may have a more exact pattern. */
    static final int MAPPED = 1;

    /** A framework matched a route. */
    static final int ROUTED = 2;

    private String method;
    private String path;
    private int known;

    /** Token of the call; 0 if the thread continues a request ({@link #resume}) or has none. */
    private int call;

    /** Set if the request may be answered later, or if the thread continues such a request. */
    private LaterAnswer later;

    /** True for an error page, whose route is not the route of the request. */
    private boolean isErrorPage;

    private Object closed;

    /** The context of the thread before it continued a request ({@link #resume}). */
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

    /** Only the first route has an effect. */
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

    /** @return the pending answer; null if the request could not be recorded */
    LaterAnswer later() {
        if (later == null && (call > 0 || call < 0 && isTraceUnsampled())) {
            later = new LaterAnswer(method, path);
        }
        return later;
    }

    private static boolean isTraceUnsampled() {
        Context context = Recorder.context();
        return context != null && !context.isSampled();
    }

    boolean isLater() {
        return later != null;
    }

    /**
     * Leaves the request before it is answered.
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

    /**
     * Called when this thread must end the request. Returns the status of the answer if the request
     * ended before the thread left it; 0 if the answer was abandoned; else {@code status}. Sets
     * {@code http.async} if another thread may still answer the request.
     */
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

    /** Called when the thread ends the request. */
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
