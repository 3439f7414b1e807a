package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Operations;

/**
 * Names of incoming requests. The route of the program's framework is preferred. Without a route, a
 * request that ends with 404 is {@code (not found)}. The name of any other request is a guess: the
 * path with {@code {id}} in place of ids.
 *
 * <p>Guesses have their own bound, so that they take no space from routes. Guesses at the start of
 * a request have another bound, so that paths that are answered with 404 take no space from other
 * paths.
 */
final class ServerNames {
    /** More routes in one process mean that names contain data. */
    private static final int ROUTES_MAX = 1 << 11;

    private static final int GUESSES_MAX = 1 << 10;
    private static final int EARLY_MAX = 1 << 9;
    private static final int FIXED_MAX = 1 << 6;
    private static final int NOT_FOUND = 404;

    private static final Names ROUTES = new Names(Operations.HTTP_SERVER, ROUTES_MAX);
    private static final Names GUESSES = new Names(Operations.HTTP_SERVER, GUESSES_MAX);
    private static final Names EARLY = new Names(Operations.HTTP_SERVER, EARLY_MAX);
    private static final Names FIXED = new Names(Operations.HTTP_SERVER, FIXED_MAX);

    private ServerNames() {}

    /**
     * @param prefix text before {@code route}, for example a context path; null if there is none
     */
    static int routed(String method, String prefix, String route) {
        StringBuilder name = begin(method);
        int prefixLength = name.length();
        name.append(prefix == null ? "" : prefix).append(route);
        return ROUTES.operation(name, prefixLength);
    }

    /**
     * The name before the route is known: a guess, or only the method if there are too many
     * guesses.
     */
    static int early(String method, String path) {
        StringBuilder name = begin(method);
        int prefixLength = name.length();
        Route.append(name, path);
        int operation = GUESSES.known(name);
        if (operation == 0) {
            operation = EARLY.early(name);
        }
        if (operation != 0) {
            return operation;
        }
        name.setLength(prefixLength - 1);
        return FIXED.operation(name, name.length());
    }

    /** The name if no route is known at the end. @param status 0 if unknown */
    static int unrouted(String method, String path, int status) {
        StringBuilder name = begin(method);
        int prefixLength = name.length();
        if (status == NOT_FOUND) {
            return FIXED.operation(name.append("(not found)"), prefixLength);
        }
        Route.append(name, path);
        return GUESSES.operation(name, prefixLength);
    }

    private static StringBuilder begin(String method) {
        StringBuilder name = Outermost.here().text;
        name.setLength(0);
        return name.append(HttpMethods.known(method)).append(' ');
    }
}
