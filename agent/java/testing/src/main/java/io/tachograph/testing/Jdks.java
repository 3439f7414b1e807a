package io.tachograph.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The JDKs on which the agent is tested. */
public final class Jdks {
    /** Versions that must be installed. */
    public static final List<Integer> VERSIONS = List.of(17, 25);

    private Jdks() {}

    /**
     * Returns the {@code java} command of a version.
     *
     * @throws IllegalStateException with the places that were searched
     */
    public static Path java(int version) {
        for (Path home : homes(version)) {
            Path java = home.resolve("bin/java");
            if (Files.isExecutable(java) && versionOf(home) == version) {
                return java;
            }
        }
        throw new IllegalStateException(
                "the agent is tested on JDK "
                        + version
                        + ", which was not found: install it, or set TACHO_JDK"
                        + version
                        + " to its home (looked in JAVA_HOME, /usr/lib/jvm, /opt/java,"
                        + " ~/.sdkman/candidates/java)");
    }

    /**
     * Returns the start of a command that runs a short program. C2 is off: such programs are too
     * short to gain from it, and it would take a third of their processor time.
     */
    public static List<String> command(int version) {
        return List.of(
                java(version).toString(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");
    }

    private static List<Path> homes(int version) {
        List<Path> homes = new ArrayList<>();
        for (String home :
                new String[] {
                    System.getProperty("java.home"),
                    System.getenv("TACHO_JDK" + version),
                    System.getenv("JAVA_HOME")
                }) {
            if (home != null && !home.isBlank()) {
                homes.add(Path.of(home));
            }
        }
        String user = System.getProperty("user.home");
        for (String folder :
                new String[] {"/usr/lib/jvm", "/opt/java", user + "/.sdkman/candidates/java"}) {
            try (Stream<Path> found = Files.list(Path.of(folder))) {
                found.sorted().forEach(homes::add);
            } catch (IOException e) {
                // The directory does not exist.
            }
        }
        return homes;
    }

    /** 0 if there is no version in the file {@code release}. */
    private static int versionOf(Path home) {
        try (Stream<String> lines = Files.lines(home.resolve("release"))) {
            return lines.filter(line -> line.startsWith("JAVA_VERSION="))
                    .map(line -> line.replaceAll("[^0-9.]", "").split("\\.")[0])
                    .mapToInt(Integer::parseInt)
                    .findFirst()
                    .orElse(0);
        } catch (IOException | RuntimeException e) {
            return 0;
        }
    }
}
