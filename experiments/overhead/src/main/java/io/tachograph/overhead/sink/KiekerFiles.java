package io.tachograph.overhead.sink;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Kieker's binary log. Files {@code *.bin} have the records. {@code kieker.map} has the strings
 * that the records refer to by id, one {@code $id=string} per line.
 */
final class KiekerFiles {
    private static final int BUFFER_BYTES = 1 << 18;

    private KiekerFiles() {}

    /** Counts all logs below a directory. {@link Tally#fault} names the first malformed file. */
    static Tally count(Path folder) throws IOException {
        Tally tally = new Tally();
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : (Iterable<Path>) files.sorted()::iterator) {
                if (file.toString().endsWith(".bin")) {
                    take(file, tally);
                }
            }
        }
        return tally;
    }

    private static void take(Path file, Tally tally) throws IOException {
        List<KiekerStream.Kind> kinds = kinds(file.resolveSibling("kieker.map"));
        try (InputStream in = Files.newInputStream(file)) {
            KiekerStream.takeAll(
                    new DataInputStream(new BufferedInputStream(in, BUFFER_BYTES)), kinds, tally);
        } catch (Receiver.MalformedException e) {
            tally.fault(file.getFileName() + ": " + e.getMessage());
        }
    }

    private static List<KiekerStream.Kind> kinds(Path map) throws IOException {
        List<KiekerStream.Kind> kinds = new ArrayList<>();
        for (String line : Files.readAllLines(map)) {
            int equals = line.indexOf('=');
            if (line.startsWith("$") && equals > 0) {
                int id = Integer.parseInt(line.substring(1, equals));
                while (kinds.size() <= id) {
                    kinds.add(null);
                }
                kinds.set(id, KiekerStream.kindOf(line.substring(equals + 1)));
            }
        }
        return kinds;
    }
}
