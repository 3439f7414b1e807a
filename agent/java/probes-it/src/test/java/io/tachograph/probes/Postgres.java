package io.tachograph.probes;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A PostgreSQL server in a new directory, which is deleted on close. The server refuses to run as
 * root, so root starts it as another user.
 */
final class Postgres implements AutoCloseable {
    private static final boolean IS_ROOT = System.getProperty("user.name").equals("root");

    /** Maximum number of ports to try. */
    private static final int ATTEMPTS_MAX = 10;

    /** Sorts directories by version. In the order of their names, 9.6 would be newer than 17. */
    static final Comparator<Path> NEWEST_FIRST =
            Comparator.comparingDouble(Postgres::version).reversed();

    private final Path programs = programs();
    private final Path directory = Files.createTempDirectory("tachograph-java-postgres-");
    private int port;

    Postgres() throws IOException, InterruptedException {
        if (IS_ROOT) {
            start(List.of("chown", "postgres", directory.toString()));
        }
        run("initdb", "-U", "board", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync");
        listen();
    }

    /** Starts the server. If another program takes the free port first, tries another one. */
    private void listen() throws IOException, InterruptedException {
        for (int attempt = 1; ; attempt++) {
            port = freePort();
            String options =
                    "-c listen_addresses=127.0.0.1 -c fsync=off -p " + port + " -k " + directory;
            Path log = directory.resolve("log" + attempt);
            try {
                run("pg_ctl", "-w", "-t", "300", "-l", log.toString(), "-o", options, "start");
                return;
            } catch (IllegalStateException e) {
                String said = Files.exists(log) ? Files.readString(log) : "no log";
                if (attempt == ATTEMPTS_MAX || !said.contains("Address already in use")) {
                    throw new IllegalStateException(said, e);
                }
            }
        }
    }

    String url() {
        return "jdbc:postgresql://127.0.0.1:" + port + "/postgres";
    }

    /**
     * On Debian, the server's programs are not in PATH, but in one directory per version. The
     * newest version is used.
     */
    private static Path programs() throws IOException {
        Path debian = Path.of("/usr/lib/postgresql");
        List<Path> folders = new ArrayList<>();
        if (Files.isDirectory(debian)) {
            try (Stream<Path> versions = Files.list(debian)) {
                versions.sorted(NEWEST_FIRST)
                        .forEach(version -> folders.add(version.resolve("bin")));
            }
        }
        for (String folder : System.getenv("PATH").split(":")) {
            folders.add(Path.of(folder));
        }
        return folders.stream()
                .filter(folder -> Files.isExecutable(folder.resolve("initdb")))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalStateException(
                                        "PostgreSQL is not installed: no initdb in "
                                                + folders
                                                + " (Debian: apt-get install postgresql)"));
    }

    /** The version that names a directory, such as 17 or 9.6. Any other directory comes last. */
    private static double version(Path directory) {
        String name = directory.getFileName().toString();
        return name.matches("\\d+(\\.\\d+)?") ? Double.parseDouble(name) : -1;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private void run(String program, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        if (IS_ROOT) {
            command.addAll(
                    List.of("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"));
        }
        command.add(programs.resolve(program).toString());
        command.addAll(List.of("-D", directory.resolve("data").toString()));
        command.addAll(List.of(arguments));
        start(command);
    }

    private void start(List<String> command) throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(command)
                        .directory(Path.of("/").toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        if (process.waitFor() != 0) {
            throw new IllegalStateException(
                    String.join(" ", command) + " ended with " + process.exitValue());
        }
    }

    @Override
    public void close() throws IOException, InterruptedException {
        run("pg_ctl", "-m", "immediate", "-w", "stop");
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file :
                    files.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                Files.deleteIfExists(file);
            }
        }
    }
}
