package io.tachograph.bootstrap.probe;

/**
 * The HTTP methods that may be part of the name of an operation. {@code OTHER} replaces all other
 * methods, because a client can send any word as a method.
 */
final class HttpMethods {
    private static final String[] KNOWN = {
        "GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT"
    };

    private HttpMethods() {}

    static String known(String method) {
        for (String known : KNOWN) {
            if (known.equals(method)) {
                return known;
            }
        }
        return "OTHER";
    }
}
