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
 * A request that the thread that got it does not answer: its call ends when the server is done with
 * it, with the status that it has then. As a listener of Jetty's it is told of that end. Holds the
 * server's objects weakly: a request that the server forgets stays open in the data and holds no
 * memory. One that is left out with its trace has no call that ends, but is the cause of what other
 * threads do for it, so that they leave that out, too.
 */
public final class LaterAnswer implements Consumer<Throwable> {
    private static final int REQUESTS_MAX = 65_536;
    private static final int OBJECTS_MAX = 4;
    private static final int FAILED_FROM = 500;

    private static final int OPEN = 0;

    /** Somebody ends it, and nobody else may. */
    private static final int ENDING = 1;

    /** The status is known, too. */
    private static final int ENDED = 2;

    private static final AtomicIntegerFieldUpdater<LaterAnswer> STATE =
            AtomicIntegerFieldUpdater.newUpdater(LaterAnswer.class, "state");

    /** By the server's request object, until the end. */
    private static final WeakIdentityMap<LaterAnswer> REQUESTS =
            new WeakIdentityMap<>(REQUESTS_MAX);

    /** How to ask what the server's API calls a response, by its class. */
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
    private volatile int state;

    LaterAnswer(String method, String path) {
        this.method = method;
        this.path = path;
    }

    /** The request that will be answered; null where it is not known, or is over. */
    static LaterAnswer of(Object request) {
        return REQUESTS.isEmpty() ? null : REQUESTS.get(request);
    }

    /**
     * @param api the interface of {@code response} that has {@code getStatus()}
     */
    public synchronized void answeredBy(Class<?> api, Object response) {
        this.api = api;
        this.response = new WeakReference<>(response);
    }

    /**
     * The server may hand this object to other threads, which work for the request: the one that it
     * keeps for itself, or the one for the program.
     *
     * @return whether it is the first one, so that the server has no listener yet
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

    /** The first exception counts. */
    public synchronized void failed(Throwable exception) {
        if (thrown == null) {
            thrown = exception;
        }
    }

    /** The server waited in vain. */
    public void timedOut() {
        call.attribute("http.async", "timeout");
    }

    /** The server is done with the request. */
    public void end() {
        if (state != OPEN) {
            return;
        }
        // May be code of the program, which takes its time: not under the monitor.
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
            return asked == null ? 0 : (int) STATUS.get(api).invokeExact(asked);
        } catch (Throwable e) {
            return 0; // a wrapper that throws: without a status then
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

    /** The thread that got the request ends it itself. */
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
