package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

/** Requests that go out: the outermost one of a thread is a call of kind http-client, parent of what the server records. */
public final class HttpClient {
    public static final String TRACEPARENT = "traceparent";

    private static final int HOSTS_MAX = 1 << 9;
    private static final int FAILED_FROM = 500;

    private static final Names NAMES = new Names(Operations.HTTP_CLIENT, HOSTS_MAX);

    private HttpClient() {}

    /**
     * A request is sent. {@link Outermost#enter} was true for it.
     *
     * @param authority host and port as in the address
     * @param path without the query
     * @return the call's token
     */
    public static int enter(String method, String authority, String path) {
        StringBuilder name = Outermost.here().text;
        name.setLength(0);
        name.append(HttpMethods.known(method)).append(' ');
        int prefixLength = name.length();
        int operation = NAMES.operation(name.append(authority), prefixLength);
        int call = Recorder.enter(operation);
        Recorder.attribute(call, "http.path", path);
        return call;
    }

    /** The header field that tells the server who calls; null when nothing is recorded here. */
    public static String traceparent() {
        Context context = Recorder.context();
        return context == null ? null : context.traceparent();
    }

    /**
     * The answer is there, or an exception.
     *
     * @param call what {@link #enter} answered, or {@link Outermost#INSIDE}
     * @param status 0 if it is not known
     */
    public static void exit(int call, int status, Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.HTTP_CLIENT);
        if (status > 0) {
            Recorder.attribute(call, "http.status", status);
        }
        if (thrown != null || status >= FAILED_FROM) {
            Recorder.exitFailed(call, thrown);
        } else {
            Recorder.exit(call);
        }
    }
}
