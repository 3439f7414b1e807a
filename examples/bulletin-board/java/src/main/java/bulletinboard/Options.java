package bulletinboard;

import bulletinboard.model.WholeNumber;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** An option of the command line overrides its environment variable. */
record Options(
        boolean help, String host, int port, int pool, int threads, int seedAds, String database) {
    static final String HELP =
            """
A bulletin board of advertisements: plain text over HTTP, stored in one database table.

usage: java -jar bulletin-board.jar [options]

Defaults are in parentheses. The last column names the environment variable of an option.
An option overrides its environment variable.

  --host HOST      address to listen on (127.0.0.1)            BOARD_HOST
  --port PORT      0 for any free port (8080)                  BOARD_PORT
  --db ADDRESS     memory:, file:PATH or                       BOARD_DB
                   postgres://user:password@host:port/name (memory:)
  --pool N         connections in the pool (30)                BOARD_POOL
  --threads N      maximum threads of the HTTP server (200)    BOARD_THREADS
  --seed-ads N     advertisements put on an empty board (1000) BOARD_SEED_ADS
  --help

example: java -jar bulletin-board.jar --port 8080 --pool 60 --db postgres://board:secret@127.0.0.1:5432/board
""";

    private static final List<String> NAMES =
            List.of("host", "port", "db", "pool", "threads", "seed-ads");

    /** Jetty uses some of its threads as acceptors and selectors. It does not start with fewer. */
    private static final int THREADS_MIN = 8;

    /** @throws IllegalArgumentException with the wrong option and the reason */
    static Options parse(List<String> arguments, Map<String, String> environment) {
        Map<String, String> given = new HashMap<>();
        for (String name : NAMES) {
            String value =
                    environment.get("BOARD_" + name.replace('-', '_').toUpperCase(Locale.ROOT));
            if (value != null) {
                given.put(name, value);
            }
        }
        boolean help = false;
        for (int i = 0; i < arguments.size(); i++) {
            String argument = arguments.get(i);
            if (argument.equals("--help") || argument.equals("-h")) {
                help = true;
                continue;
            }
            int equals = argument.indexOf('=');
            String name = argument.substring(0, equals < 0 ? argument.length() : equals);
            if (!name.startsWith("--") || !NAMES.contains(name.substring(2))) {
                throw new IllegalArgumentException("unknown option " + argument);
            }
            if (equals < 0 && i + 1 == arguments.size()) {
                throw new IllegalArgumentException(name + " needs a value");
            }
            given.put(
                    name.substring(2),
                    equals < 0 ? arguments.get(++i) : argument.substring(equals + 1));
        }
        return new Options(
                help,
                given.getOrDefault("host", "127.0.0.1"),
                number(given, "port", 0, 65_535, 8080),
                number(given, "pool", 1, 10_000, 30),
                number(given, "threads", THREADS_MIN, 10_000, 200),
                number(given, "seed-ads", 0, 10_000_000, 1_000),
                given.getOrDefault("db", "memory:"));
    }

    private static int number(
            Map<String, String> given, String name, int min, int max, int otherwise) {
        String text = given.get(name);
        return text == null
                ? otherwise
                : WholeNumber.parse("--" + name, text, min, max, IllegalArgumentException::new);
    }
}
