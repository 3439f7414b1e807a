package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Bounds on the memory that the agent allocates because of calls of the program: for record types and buffers. */
class BoundsTest {
    private static final int CHARS = 1_000;

    /** Adds {@code count} items of one kind. @return number of accepted items */
    private static int taken(String what, int count) throws Exception {
        switch (what) {
            case "record types":
                return types(new RecordTypes(RecordTypes.COUNT_MAX, 1 << 20), count);
            case "characters":
                // The name has `count - 2` characters, and each of two separators has one.
                return new RecordTypes(9, CHARS).id("n".repeat(count - 2), "") > 0 ? count : 0;
            case "fields":
                String[] fields = new String[2 * count];
                java.util.Arrays.fill(fields, "f");
                return new RecordTypes(9, CHARS).id("n", "J".repeat(count), fields) > 0 ? count : 0;
            case "lent":
                return lent(count);
            default:
                return threads(count);
        }
    }

    private static int types(RecordTypes types, int count) {
        int taken = 0;
        for (int at = 0; at < count; at++) {
            taken += types.id("t" + at, "") > 0 ? 1 : 0;
        }
        return taken;
    }

    private static Buffers buffers() {
        Buffers.Options options = new Buffers.Options();
        options.words = 64;
        options.virtualWords = 64;
        options.threadsMax = 64;
        return new Buffers(new Session(1, 2), options);
    }

    /** Borrows buffers for calls that may end on another thread. @return number of buffers lent */
    private static int lent(int count) {
        Buffers buffers = buffers();
        int taken = 0;
        for (int at = 0; at < count; at++) {
            taken += buffers.lend(Thread.currentThread()).slot >= 0 ? 1 : 0;
        }
        return taken;
    }

    /**
     * Starts threads that are alive at the same time.
     *
     * @return number of threads that got a buffer
     */
    private static int threads(int count) throws InterruptedException {
        Buffers buffers = buffers();
        int operation = Operations.shared().id(Operations.METHOD, "bounded");
        CountDownLatch all = new CountDownLatch(count);
        List<Integer> tokens = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            Thread thread =
                    new Thread(
                            () -> {
                                int token = buffers.current().enter(operation);
                                synchronized (tokens) {
                                    tokens.add(token);
                                }
                                all.countDown();
                                try {
                                    all.await();
                                } catch (InterruptedException e) {
                                    Thread.currentThread().interrupt();
                                }
                                buffers.current().exit(token);
                            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        int recorded = (int) tokens.stream().filter(token -> token > 0).count();
        assertEquals(
                count - recorded,
                buffers.callsDroppedWithoutBuffer(),
                "calls of threads without a buffer must be counted as dropped");
        return recorded;
    }

    @ParameterizedTest
    @CsvSource({
        "record types, 4096, 4096",
        "characters, 1000, 0",
        "fields, 64, 0",
        "lent, 256, 256",
        "threads, 64, 64",
    })
    void theBoundIsAcceptedAndOneMoreIsNot(String what, int bound, int past) throws Exception {
        assertEquals(bound, taken(what, bound));
        assertEquals(past, taken(what, bound + 1));
    }
}
