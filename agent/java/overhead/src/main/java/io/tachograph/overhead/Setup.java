package io.tachograph.overhead;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One way to watch the measured process: its JVM options, its environment and the receiver it
 * wants. One more way to compare is one more constant here.
 */
enum Setup {
    NONE("none", Receiver.NONE),
    /**
     * Everything woven and recorded, nobody listens: the buffers fill, then calls are counted and
     * left out.
     */
    OURS_ALONE("ours, no server", Receiver.NONE),
    /**
     * What finds room is delivered and acknowledged; what does not is counted and left out: the
     * default.
     */
    OURS_SINK("ours, sink", Receiver.ACKNOWLEDGING),
    /** Everything is delivered; the program waits where it must, as with Kieker. */
    OURS_SINK_BLOCK("ours, sink, block", Receiver.ACKNOWLEDGING),
    OURS_SERVER("ours, tacho serve", Receiver.REAL),
    /** Calls are counted, not recorded. */
    OURS_AGGREGATE("ours, aggregate-only", Receiver.ACKNOWLEDGING),
    /**
     * Records are made and thrown away instead of queued: what MooBench calls "collecting data".
     */
    KIEKER_ALONE("kieker, no writer", Receiver.NONE),
    KIEKER_SINK("kieker, tcp sink", Receiver.SILENT);

    /** Who listens. */
    enum Receiver {
        NONE,
        SILENT,
        ACKNOWLEDGING,
        REAL
    }

    private static final String QUEUE = "-Dkieker.monitoring.core.controller.WriterController.";
    private static final String TCP = "kieker.monitoring.writer.tcp.SingleSocketTcpWriter";

    final String title;
    final Receiver receiver;

    Setup(String title, Receiver receiver) {
        this.title = title;
        this.receiver = receiver;
    }

    boolean isOurs() {
        return this != NONE && !isKieker();
    }

    boolean isKieker() {
        return this == KIEKER_ALONE || this == KIEKER_SINK;
    }

    /**
     * @param agent jar of ours, or Kieker's; @param port of the receiver, if it has one
     */
    List<String> jvmOptions(Path agent, int port) {
        List<String> options = new ArrayList<>(List.of("-Xms1g", "-Xmx1g"));
        if (this == NONE) {
            return options;
        }
        options.add("-javaagent:" + agent);
        if (isKieker()) {
            options.addAll(
                    List.of(
                            "-Dkieker.monitoring.writer="
                                    + (this == KIEKER_ALONE
                                            ? "kieker.monitoring.writer.dump.DumpWriter"
                                            : TCP),
                            QUEUE
                                    + "RecordQueueFQN="
                                    + (this == KIEKER_ALONE
                                            ? "kieker.monitoring.writer.dump.DumpQueue"
                                            : "org.jctools.queues.MpscArrayQueue"),
                            // As MooBench runs it: a writer that is asleep costs the program a
                            // wake-up for each record.
                            QUEUE
                                    + "QueuePutStrategy=kieker.monitoring.queue.putstrategy.YieldPutStrategy",
                            "-D" + TCP + ".hostname=127.0.0.1",
                            "-D" + TCP + ".port=" + port,
                            // The default of 1 ms often ends the writer, and then the program,
                            // before it has begun.
                            "-D" + TCP + ".connectionTimeoutInMs=5000"));
        }
        return options;
    }

    /**
     * @param server address that ours sends to
     */
    Map<String, String> environment(String server) {
        if (isKieker()) {
            return Map.of("KIEKER_SIGNATURES_INCLUDE", "observed.Monitored");
        }
        if (!isOurs()) {
            return Map.of();
        }
        return Map.of(
                "TACHO_SERVER",
                server,
                "TACHO_SERVICE",
                "overhead",
                this == OURS_AGGREGATE ? "TACHO_AGGREGATE" : "TACHO_INCLUDE",
                "observed.*",
                "TACHO_WHEN_FULL",
                this == OURS_SINK_BLOCK ? "block" : "drop",
                "TACHO_BLOCK_MAX",
                "10s");
    }
}
