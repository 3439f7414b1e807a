package io.tachograph.core.log;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes single lines to standard error or to a file. {@link #sayOnce} limits repeated lines, so
 * that a recurring error cannot fill a disk.
 */
public final class AgentLog {
    private static final long REPEAT_NANOS = 60_000_000_000L;
    private static final int SUBJECTS_MAX = 1_000;

    private final PrintStream out;
    private final boolean chatty;
    private final Map<String, Long> saidAt = new HashMap<>();

    private AgentLog(PrintStream out, boolean chatty) {
        this.out = out;
        this.chatty = chatty;
    }

    /** @param chatty true to write the lines of {@link #detail} */
    public static AgentLog to(PrintStream out, boolean chatty) {
        return new AgentLog(out, chatty);
    }

    public static AgentLog toFile(Path file, boolean chatty) throws IOException {
        var stream =
                Files.newOutputStream(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        return new AgentLog(new PrintStream(stream, true, StandardCharsets.UTF_8), chatty);
    }

    /** Logs an event for the user, such as a lost connection or a reconnection. */
    public void say(String line) {
        write(line);
    }

    /**
     * As {@link #say}, but at most once a minute for each subject, and only for the first 1,000
     * subjects.
     */
    public void sayOnce(String subject, String line) {
        synchronized (saidAt) {
            if (!wouldSay(subject)) {
                return;
            }
            saidAt.put(subject, System.nanoTime());
        }
        write(line);
    }

    /** True if {@link #sayOnce} would write a line now; for lines that are costly to build. */
    public boolean wouldSay(String subject) {
        synchronized (saidAt) {
            Long before = saidAt.get(subject);
            return before == null
                    ? saidAt.size() < SUBJECTS_MAX
                    : System.nanoTime() - before >= REPEAT_NANOS;
        }
    }

    /** Writes a line only if {@code log_detail} is set. */
    public void detail(String line) {
        if (chatty) {
            write(line);
        }
    }

    private synchronized void write(String line) {
        out.println(Instant.now().truncatedTo(ChronoUnit.MILLIS) + " tachograph: " + line);
    }
}
