package bulletinboard.web;

import org.eclipse.jetty.http.HttpHeader;

import java.sql.SQLException;
import java.util.Map;
import java.util.TreeMap;

/** Finds the action for a method and a path. */
final class Routes {
    private static final String ADS = "/ads/";

    private final Map<String, Map<String, Action>> actions;

    Routes(AdActions ads) {
        actions =
                Map.of(
                        "/",
                        methods(Map.of("GET", ads::help)),
                        "/ads",
                        methods(Map.of("GET", ads::list, "POST", ads::post)),
                        ADS + "ID",
                        methods(
                                Map.of(
                                        "GET",
                                        ads::read,
                                        "PUT",
                                        ads::update,
                                        "DELETE",
                                        ads::delete)),
                        "/search",
                        methods(Map.of("GET", ads::search)),
                        "/statistics",
                        methods(Map.of("GET", ads::statistics)));
    }

    @FunctionalInterface
    interface Action {
        Answer answer(Call call) throws SQLException;
    }

    /**
     * @throws RefusedException 404 for an unknown path, 405 for a method that the path does not
     *     support
     */
    Action find(String method, String path) {
        boolean isId =
                path.startsWith(ADS)
                        && path.length() > ADS.length()
                        && path.indexOf('/', ADS.length()) < 0;
        Map<String, Action> known = actions.get(isId ? ADS + "ID" : path);
        if (known == null) {
            throw new RefusedException(404, "not found, see / for a list of paths");
        }
        Action action = known.get(method);
        if (action == null) {
            String allowed = String.join(", ", known.keySet());
            String message = method + " is not allowed here; allowed: " + allowed + "\n";
            throw new RefusedException(
                    new Answer(405, message, Map.of(HttpHeader.ALLOW.asString(), allowed)));
        }
        return action;
    }

    /**
     * A path that supports GET also supports HEAD (RFC 9110, section 9.1). {@link BoardHandler}
     * omits the body.
     */
    private static Map<String, Action> methods(Map<String, Action> given) {
        Map<String, Action> known = new TreeMap<>(given);
        if (given.containsKey("GET")) {
            known.put("HEAD", given.get("GET"));
        }
        return known;
    }
}
