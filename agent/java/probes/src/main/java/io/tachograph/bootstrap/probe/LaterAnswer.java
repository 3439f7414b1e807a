package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.HandedCall;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Recorder;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.Consumer;

/**
 * A request that may be answered after its thread has left it. The call ends when the server
 * completes the request, with the status at that time. In Jetty, this object itself is the listener
 * for the completion.
 *
 * <p>References to the server's objects are weak. If the server abandons a request, the request
 * stays open in the data but keeps no objects in memory. A request in an unrecorded trace has no
 * call to end. It still passes its context to other threads, so that their work for the request is
 * not recorded either.
 */
public final class LaterAnswer implements Consumer<Throwable> {
    private static final int REQUESTS_MAX = 65_536;
    private static final int OBJECTS_MAX = 4;
    private static final int FAILED_FROM = 500;

    private static final int OPEN = 0;

    private static final int ENDING = 1;

    private static final int ENDED = 2;

    private static final AtomicIntegerFieldUpdater<LaterAnswer> STATE =
            AtomicIntegerFieldUpdater.newUpdater(LaterAnswer.class, "state");

    /** Pending requests, by the objects that {@link #comesBackAs} registered. */
    private static final WeakIdentityMap<LaterAnswer> REQUESTS =
            new WeakIdentityMap<>(REQUESTS_MAX);

    /** A handle for {@code getStatus()} of each interface that has this method. */
    private static final ClassValue<MethodHandle> STATUS =
            new ClassValue<>() {
                @Override
                protected MethodHandle computeValue(Class<?> type) {
                    try {
                        MethodType get = MethodType.methodType(int.class);
                        return MethodHandles.publicLookup()
                                .findVirtual(type, "getStatus", get)
                                .asType(MethodType.methodType(int.class, Object.class));
                    } catch (ReflectiveOperationException e) {
                        return MethodHandles.dropArguments(
                                MethodHandles.constant(int.class, 0), 0, Object.class);
                    }
                }
            };

    private final HandedCall call = Recorder.handed();
    private final String method;
    private final String path;
    private int known;
    private int operation;
    private Throwable thrown;
    private Class<?> api;
    private WeakReference<Object> response;
    private final List<WeakReference<Object>> requests = new ArrayList<>(2);
    private int status;

    /** The status that was sent, for a server without response objects (the JDK's server). */
    private volatile int given;

    private volatile int state;

    LaterAnswer(String method, String path) {
        this.method = method;
        this.path = path;
    }

    /** The pending request; null if it is unknown or has ended. */
    static LaterAnswer of(Object request) {
        return REQUESTS.isEmpty() ? null : REQUESTS.get(request);
    }

    /** @param api the interface of {@code response} that has {@code getStatus()} */
    public synchronized void answeredBy(Class<?> api, Object response) {
        this.api = api;
        this.response = new WeakReference<>(response);
    }

    /** For a server without response objects. */
    public void answers(int status) {
        given = status;
    }

    boolean isGiven() {
        return given != 0;
    }

    /**
     * Registers an object by which the request is found later, on any thread: the server's own
     * request object, the one that the program got, or the stream of the answer's body.
     *
     * @return true for the first object: the server has no listener yet
     */
    public synchronized boolean comesBackAs(Object request) {
        if (requests.size() < OBJECTS_MAX
                && state == OPEN
                && REQUESTS.get(request) != this) {
            requests.add(new WeakReference<>(request));
            if (!REQUESTS.put(request, this)) {
                Losses.parent();
            }
            return requests.size() == 1;
        }
        return false;
    }

    Context context() {
        return call.context();
    }

    boolean leave(int token, int known) {
        synchronized (this) {
            this.known = Math.max(known, this.known);
        }
        return Recorder.leave(token, call);
    }

    synchronized void routed(String prefix, String route) {
        if (known != ServerRequest.ROUTED) {
            known = ServerRequest.ROUTED;
            operation = ServerNames.routed(method, prefix, route);
        }
    }

    /** Only the first exception has an effect. */
    public synchronized void failed(Throwable exception) {
        if (thrown == null) {
            thrown = exception;
        }
    }

    public void timedOut() {
        call.attribute("http.async", "timeout");
    }

    /** Called when the server has completed the request. */
    public void end() {
        if (state != OPEN) {
            return;
        }
        // The class of the response may belong to the program and be slow, so the status is read
        // outside the monitor.
        int asked = ask();
        if (STATE.compareAndSet(this, OPEN, ENDING)) {
            end(asked);
        }
    }

    private int ask() {
        Class<?> api;
        Object asked;
        synchronized (this) {
            api = this.api;
            asked = response == null ? null : response.get();
        }
        try {
            return asked == null ? given : (int) STATUS.get(api).invokeExact(asked);
        } catch (Throwable e) {
            return 0; // a wrapper that throws: the status is unknown
        }
    }

    private synchronized void end(int status) {
        this.status = status;
        state = ENDED;
        forget();
        if (known == ServerRequest.UNKNOWN) {
            operation = ServerNames.unrouted(method, path, status);
        }
        if (status > 0) {
            call.attribute("http.status", (long) status);
        }
        call.end(operation, thrown != null || status >= FAILED_FROM, thrown);
    }

    private void forget() {
        for (WeakReference<Object> request : requests) {
            Object gone = request.get();
            if (gone != null) {
                REQUESTS.remove(gone);
            }
        }
    }

    /** Called when the thread that received the request also ends it. */
    synchronized void abandon() {
        state = ENDED;
        forget();
    }

    @Override
    public void accept(Throwable exception) {
        if (exception != null) {
            failed(exception);
        }
        end();
    }

    boolean hasEnded() {
        return state == ENDED;
    }

    synchronized int status() {
        return status;
    }
}
