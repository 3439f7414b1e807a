package bulletinboard;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A PostgreSQL server in a new directory, which is deleted on close. PostgreSQL refuses to run as
 * root, so tests that run as root start it as the user postgres.
 */
final class PostgresServer implements AutoCloseable {
    private static final long COMMAND_S_MAX = 60;

    /** Sorts directories by version. In the order of their names, 9.6 would be newer than 17. */
    static final Comparator<Path> NEWEST_FIRST =
            Comparator.comparingDouble(PostgresServer::version).reversed();

    private final Path programs;
    private final Path directory;
    private final int port;
    private boolean running;

    PostgresServer() throws IOException {
        programs = programs();
        directory = Files.createTempDirectory("bulletin-board-postgres-");
        port = freePort();
        if (isRoot()) {
            run(List.of("chown", "postgres", directory.toString()));
        }
        Path data = directory.resolve("data");
        runAsServer(
                "initdb",
                "-D",
                data.toString(),
                "-U",
                "board",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "--no-sync");
        runAsServer(
                "pg_ctl",
                "-D",
                data.toString(),
                "-w",
                "-l",
                directory.resolve("log").toString(),
                "-o",
                "-p " + port + " -c listen_addresses=127.0.0.1 -c fsync=off -k " + directory,
                "start");
        running = true;
        runAsServer(
                "createdb",
                "-h",
                "127.0.0.1",
                "-p",
                Integer.toString(port),
                "-U",
                "board",
                "board");
    }

    String url() {
        return "postgres://board:secret@127.0.0.1:" + port + "/board";
    }

    /** Stops the server immediately, like a crash. */
    void stop() throws IOException {
        if (running) {
            running = false;
            runAsServer(
                    "pg_ctl",
                    "-D",
                    directory.resolve("data").toString(),
                    "-m",
                    "immediate",
                    "-w",
                    "stop");
        }
    }

    @Override
    public void close() throws IOException {
        stop();
        Files.walkFileTree(
                directory,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                            throws IOException {
                        Files.delete(file);
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult postVisitDirectory(Path visited, IOException error)
                            throws IOException {
                        Files.delete(visited);
                        return FileVisitResult.CONTINUE;
                    }
                });
    }

    private void runAsServer(String program, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        if (isRoot()) {
            command.addAll(
                    List.of("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"));
        }
        command.add(programs.resolve(program).toString());
        command.addAll(List.of(arguments));
        run(command);
    }

    private static void run(List<String> command) throws IOException {
        Path output = Files.createTempFile("postgres-command", ".log");
        try {
            Process process =
                    new ProcessBuilder(command)
                            .directory(Path.of("/").toFile())
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile())
                            .start();
            boolean ended = process.waitFor(COMMAND_S_MAX, TimeUnit.SECONDS);
            if (!ended || process.exitValue() != 0) {
                process.destroyForcibly();
                throw new IllegalStateException(
                        String.join(" ", command) + " failed: " + Files.readString(output));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(String.join(" ", command) + " was interrupted", e);
        } finally {
            Files.deleteIfExists(output);
        }
    }

    /**
     * The directory with the server's programs. Debian has a directory for each version, outside of
     * PATH. The newest of them is used. If there is none, PATH is searched.
     */
    private static Path programs() throws IOException {
        List<Path> folders = new ArrayList<>();
        Path debian = Path.of("/usr/lib/postgresql");
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

    private static boolean isRoot() {
        return System.getProperty("user.name").equals("root");
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
}
