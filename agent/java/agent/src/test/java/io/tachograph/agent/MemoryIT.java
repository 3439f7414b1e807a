package io.tachograph.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.WireServer;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory that the agent adds to a program, compared with a run without the agent. */
class MemoryIT {
    /**
     * Limit per thread, bytes. A virtual thread has two thread locals of the agent, each with an
     * object. The limit also allows for differences between the runs.
     */
    private static final long BYTES_EACH_MAX = 320;

    /** Allowance for differences that do not depend on the number of threads, bytes. */
    private static final long ROOM = 2 << 20;

    private static final int MEASUREMENTS = 4;

    /** Limit on the frames that the server has not acknowledged, bytes. */
    private static final long QUEUE = 4 << 20;

    /** Heap and direct memory, from the output of the program. */
    private static long bytes(Program program) throws Exception {
        return program.number("heap") + program.number("direct");
    }

    private static long bare(int jdk, String what, int count) throws Exception {
        return bytes(program(jdk, what, count).bare().run());
    }

    private static Program program(int jdk, String what, int count) {
        return Program.on(jdk, what, String.valueOf(count)).option("-Xmx400m");
    }

    /** @return memory that the agent adds, in bytes */
    private static long busy(int count) throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    program(25, "busy-virtual", count)
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_FLUSH_MAX", "30s")
                            .with("TACHO_QUEUE", QUEUE)
                            .run();
            assertNull(server.fault);
            assertEquals(
                    program.number("made"),
                    server.decoder().callsEnded + server.executionsDropped,
                    "each call must be either received or counted as dropped");
            // There are 1,024 buffers. In each of the three rounds, at least 1,024 threads record
            // three calls each.
            assertTrue(server.decoder().callsEnded >= 3 * 3 * 1_024, program.describe());
            return bytes(program) - bare(25, "busy-virtual", count);
        }
    }

    /**
     * On a busy machine, a run may have megabytes more than another, because the sender lags. Memory
     * that the agent needs is in each run, so one of several measurements must be within the limits.
     */
    @Test
    void tenThousandBusyVirtualThreadsTakeNoMoreThanTheBound() throws Exception {
        // Each ring takes 16 KiB. The other 16 KiB per thread are for open calls, objects, and the
        // state of the sender for each ring.
        long boundMax = 1_024 * 32_768L + QUEUE;
        long grownMax = 9_000 * BYTES_EACH_MAX + QUEUE + ROOM;
        StringBuilder measured = new StringBuilder();
        boolean isWithin = false;
        for (int attempt = 0; attempt < MEASUREMENTS && !isWithin; attempt++) {
            long atTheBound = busy(1_024);
            long farPastIt = busy(10_000);
            isWithin = atTheBound < boundMax && farPastIt - atTheBound < grownMax;
            measured.append(atTheBound).append(" bytes with 1,024 threads, ");
            measured.append(farPastIt).append(" with 10,000; ");
        }
        assertTrue(isWithin, measured::toString);
    }

    /** The ring has 128 MiB, in a heap of half that size. */
    @Test
    void callsAreCountedAsDroppedWithoutMemoryForARing() throws Exception {
        try (WireServer server = new WireServer()) {
            Program program =
                    Program.on(25, "busy-virtual", "50")
                            .option("-Xmx64m")
                            .with("TACHO_SERVER", server.address())
                            .with("TACHO_VIRTUAL_BUFFER", 1 << 24)
                            .with("TACHO_FLUSH_MAX", "30s")
                            .run();
            assertNull(server.fault);
            assertEquals(program.number("made"), server.executionsDropped, program.describe());
            assertEquals(0, server.decoder().callsEnded);
        }
    }

    /** A ring has 256 KiB, so one ring per thread would need 100 MiB. */
    @ParameterizedTest
    @ValueSource(ints = {17, 25})
    void threadsThatOnlySubmitTasksTakeNoRing(int jdk) throws Exception {
        int count = 400;
        try (WireServer server = new WireServer()) {
            Program program =
                    program(jdk, "handing", count).with("TACHO_SERVER", server.address()).run();
            assertNull(server.fault);
            long added = bytes(program) - bare(jdk, "handing", count);
            // The agent itself and its class data take about 3 MiB.
            assertTrue(
                    added < count * 1_024 + (8 << 20), () -> "the agent adds " + added + " bytes");
        }
    }
}
