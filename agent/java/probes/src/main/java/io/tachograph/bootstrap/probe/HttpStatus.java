package io.tachograph.bootstrap.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Reads the status of a {@code java.net.http.HttpResponse}, a class that the bootstrap loader
 * cannot see.
 */
final class HttpStatus {
    private static final Class<?> RESPONSE = response();
    private static final MethodHandle STATUS = statusCode();

    private HttpStatus() {}

    /** @return 0 if {@code answer} is not a response */
    static int of(Object answer) {
        if (STATUS == null || !RESPONSE.isInstance(answer)) {
            return 0;
        }
        try {
            return (int) STATUS.invoke(answer);
        } catch (Throwable e) {
            return 0;
        }
    }

    private static Class<?> response() {
        try {
            return Class.forName(
                    "java.net.http.HttpResponse", false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static MethodHandle statusCode() {
        try {
            return RESPONSE == null
                    ? null
                    : MethodHandles.publicLookup()
                            .findVirtual(RESPONSE, "statusCode", MethodType.methodType(int.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
