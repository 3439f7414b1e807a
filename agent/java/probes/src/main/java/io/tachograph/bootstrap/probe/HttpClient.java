package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.HandedCall;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/**
 * Outgoing requests. The outermost request of a thread is a call of kind http-client. It is the
 * parent of the call that the agent in the called program records.
 */
public final class HttpClient {
    public static final String TRACEPARENT = "traceparent";

    private static final int HOSTS_MAX = 1 << 9;
    private static final int FAILED_FROM = 500;

    private static final Names NAMES = new Names(Operations.HTTP_CLIENT, HOSTS_MAX);

    /** Sets a header of a request of the JDK's client. */
    private static volatile MethodHandle headerSetter;

    /** Returns the headers that the JDK's client adds. */
    private static volatile MethodHandle headersGetter;

    /** Null for a synchronous request, which is a call of the current thread. */
    private final HandedCall later;

    private final int call;

    private HttpClient(HandedCall later, int call) {
        this.later = later;
        this.call = call;
    }

    /**
     * @param later true if the answer is a promise
     * @param authority host and port as in the URL
     * @param path the path without the query
     * @return null if this thread is inside another request, or if a lack of memory or stack
     *     prevents the recording; otherwise {@link #end} or {@link #endWith} must follow
     */
    public static HttpClient begin(boolean later, String method, String authority, String path) {
        if (!Outermost.enter(Outermost.HTTP_CLIENT)) {
            return null;
        }
        int call = 0;
        try {
            int operation = operation(method, authority);
            if (later) {
                HandedCall begun = Recorder.begin(operation, "http.path", path);
                return new HttpClient(begun, 0).sends();
            }
            call = Recorder.enter(operation);
            Recorder.attribute(call, "http.path", path);
            return new HttpClient(null, call).sends();
        } catch (Throwable e) {
            // Stack overflow or out of memory: the caller gets no token, so the call ends here.
            leave();
            Recorder.exit(call);
            return null;
        }
    }

    private HttpClient sends() {
        Outermost.here().sending = this;
        return this;
    }

    private static void leave() {
        Outermost.here().sending = null;
        Outermost.leave(Outermost.HTTP_CLIENT);
    }

    /** The request that the current thread is sending; null if none is recorded. */
    public static HttpClient sending() {
        return Outermost.here().sending;
    }

    /**
     * Adds the header with the trace context of this call.
     *
     * @param inside a look-up on the class of {@code request}, which has the method {@code
     *     setSystemHeader}
     */
    public void tell(MethodHandles.Lookup inside, Object request) throws Throwable {
        String traceparent = traceparent();
        if (traceparent == null) {
            return;
        }
        setter(inside).invokeExact(request, TRACEPARENT, traceparent);
    }

    /**
     * Copies the trace header from the first request to a follow-up request of the same call, if
     * the first request has that header.
     *
     * @param inside as in {@link #tell}
     * @param made arguments of the method that created {@code request}; the first request is one of
     *     them
     */
    public static void tellAgain(MethodHandles.Lookup inside, Object[] made, Object request)
            throws Throwable {
        Class<?> type = inside.lookupClass();
        for (Object first : made) {
            if (type.isInstance(first)) {
                Object headers = getter(inside).invokeExact(first);
                Object told = ((Map<?, ?>) headers).get(TRACEPARENT);
                if (told instanceof List && ((List<?>) told).size() == 1) {
                    String traceparent = (String) ((List<?>) told).get(0);
                    setter(inside).invokeExact(request, TRACEPARENT, traceparent);
                }
                return;
            }
        }
    }

    private static MethodHandle setter(MethodHandles.Lookup inside)
            throws ReflectiveOperationException {
        MethodHandle setter = headerSetter;
        if (setter == null) {
            MethodType type = MethodType.methodType(void.class, String.class, String.class);
            setter =
                    inside.findVirtual(inside.lookupClass(), "setSystemHeader", type)
                            .asType(type.insertParameterTypes(0, Object.class));
            headerSetter = setter;
        }
        return setter;
    }

    private static MethodHandle getter(MethodHandles.Lookup inside)
            throws ReflectiveOperationException {
        MethodHandle getter = headersGetter;
        if (getter == null) {
            Method headers = null;
            for (Method method : inside.lookupClass().getDeclaredMethods()) {
                // JDK 11 uses the first name, later versions the second.
                if (method.getName().equals("getSystemHeaders")
                        || method.getName().equals("getSystemHeadersBuilder")) {
                    headers = method;
                }
            }
            if (headers == null) {
                throw new NoSuchMethodException("getSystemHeadersBuilder");
            }
            MethodHandle map = inside.unreflect(headers.getReturnType().getMethod("map"));
            getter =
                    MethodHandles.filterReturnValue(inside.unreflect(headers), map)
                            .asType(MethodType.methodType(Object.class, Object.class));
            headersGetter = getter;
        }
        return getter;
    }

    private static int operation(String method, String authority) {
        StringBuilder name = Outermost.here().text;
        name.setLength(0);
        name.append(HttpMethods.known(method)).append(' ');
        int prefixLength = name.length();
        return NAMES.operation(name.append(authority), prefixLength);
    }

    /**
     * The value of the {@code traceparent} header. It names this call or, if this call is not
     * recorded, its parent or its unrecorded trace. Null if there is none of these.
     */
    public String traceparent() {
        return text(later == null ? Recorder.context() : later.context());
    }

    /** As {@link #traceparent()}, for the thread's current call, before a request begins. */
    public static String traceparentOfCaller() {
        return text(Recorder.context());
    }

    private static String text(Context context) {
        return context == null ? null : context.traceparent();
    }

    public void endWith(CompletionStage<?> promise) {
        leave();
        promise.whenComplete((answer, thrown) -> finish(HttpStatus.of(answer), thrown));
    }

    /** @param status 0 if unknown */
    public void end(int status, Throwable thrown) {
        leave();
        finish(status, thrown);
    }

    private void finish(int status, Throwable thrown) {
        boolean isFailed = thrown != null || status >= FAILED_FROM;
        if (later == null) {
            if (status > 0) {
                Recorder.attribute(call, "http.status", status);
            }
            if (isFailed) {
                Recorder.exitFailed(call, thrown);
            } else {
                Recorder.exit(call);
            }
            return;
        }
        if (status > 0) {
            later.attribute("http.status", (long) status);
        }
        later.end(0, isFailed, thrown);
    }
}
