package io.tachograph.bootstrap.probe;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;

/**
 * Implements {@code AsyncListener} of both servlet APIs. The bootstrap loader cannot see these
 * interfaces, so the listener is a proxy.
 */
public final class AsyncListening implements InvocationHandler {
    private final LaterAnswer answer;

    public AsyncListening(LaterAnswer answer) {
        this.answer = answer;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        try {
            switch (method.getName()) {
                case "equals":
                    return proxy == arguments[0];
                case "hashCode":
                    return System.identityHashCode(proxy);
                case "toString":
                    return "tachograph";
                case "onComplete":
                    answer.end();
                    break;
                case "onTimeout":
                    answer.timedOut();
                    break;
                case "onError":
                    answer.failed((Throwable) ask(method, arguments[0], "getThrowable"));
                    break;
                default:
                    listenAgain(proxy, method, arguments[0]);
            }
        } catch (Throwable e) {
            // An exception must not reach the server. The recorded call may then have no end.
        }
        return null;
    }

    private static Object ask(Method told, Object event, String what) throws Exception {
        return told.getParameterTypes()[0].getMethod(what).invoke(event);
    }

    /**
     * Registers the listener again. The program has called {@code startAsync} again after a
     * dispatch, and such a call drops all listeners.
     */
    private static void listenAgain(Object proxy, Method told, Object event) throws Exception {
        Method get = told.getParameterTypes()[0].getMethod("getAsyncContext");
        get.getReturnType()
                .getMethod("addListener", told.getDeclaringClass())
                .invoke(get.invoke(event), proxy);
    }
}
