package app;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

import javax.management.ObjectName;

final class Busy {
    private static final int ROUNDS = 3;

    private Busy() {}

    /**
     * Runs virtual threads that are all inside an outermost call at the same time, in three rounds.
     */
    static void virtual(int count) throws Exception {
        CountDownLatch[] inside = latches(count);
        CountDownLatch[] go = latches(1);
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            Runnable task =
                    () -> {
                        for (int round = 0; round < ROUNDS; round++) {
                            Body.outer(inside[round], go[round]);
                        }
                    };
            threads.add(
                    (Thread)
                            Thread.class
                                    .getMethod("startVirtualThread", Runnable.class)
                                    .invoke(null, task));
        }
        for (int round = 0; round < ROUNDS; round++) {
            inside[round].await();
            tell();
            go[round].countDown();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("made " + 3L * ROUNDS * count);
    }

    private static CountDownLatch[] latches(int count) {
        CountDownLatch[] latches = new CountDownLatch[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            latches[round] = new CountDownLatch(count);
        }
        return latches;
    }

    /**
     * Runs platform threads on which no call is recorded. Each thread submits a task to a pool and
     * waits.
     */
    static void handing(int count) throws Exception {
        ThreadPoolExecutor pool =
                new ThreadPoolExecutor(2, 2, 1, TimeUnit.MINUTES, new LinkedBlockingQueue<>());
        CountDownLatch ran = new CountDownLatch(count);
        CountDownLatch end = new CountDownLatch(1);
        for (int at = 0; at < count; at++) {
            Thread thread =
                    new Thread(
                            () -> {
                                pool.execute(ran::countDown);
                                try {
                                    end.await();
                                } catch (InterruptedException e) {
                                    Thread.currentThread().interrupt();
                                }
                            });
            thread.start();
        }
        ran.await();
        tell();
        end.countDown();
        pool.shutdown();
    }

    /**
     * Prints the heap, the direct memory and the resident memory of the process, in bytes. The heap
     * excludes the frames of parked virtual threads ({@code StackChunk}), because their number
     * varies: the JVM keeps one or two chunks per thread, depending on the last collection.
     */
    private static void tell() throws Exception {
        String histogram =
                (String)
                        ManagementFactory.getPlatformMBeanServer()
                                .invoke(
                                        new ObjectName(
                                                "com.sun.management:type=DiagnosticCommand"),
                                        "gcClassHistogram",
                                        new Object[] {new String[0]},
                                        new String[] {String[].class.getName()});
        long heap = 0;
        for (String line : histogram.split("\n")) {
            String[] words = line.trim().split("\\s+");
            if (words[0].equals("Total")) {
                heap += Long.parseLong(words[2]);
            } else if (line.contains(" jdk.internal.vm.StackChunk")) {
                heap -= Long.parseLong(words[2]);
            }
        }
        long direct = 0;
        for (BufferPoolMXBean pool :
                ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            direct += pool.getMemoryUsed();
        }
        System.out.println("heap " + heap + " direct " + direct + " resident " + resident());
    }

    /** Resident memory of the process in bytes; -1 on systems other than Linux. */
    private static long resident() throws Exception {
        Path status = Path.of("/proc/self/status");
        if (!Files.exists(status)) {
            return -1;
        }
        return Files.readAllLines(status).stream()
                .filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * 1_024)
                .findFirst()
                .orElse(-1);
    }

    static final class Body {
        static void outer(CountDownLatch inside, CountDownLatch go) {
            inner();
            inside.countDown();
            try {
                go.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            inner();
        }

        static void inner() {
            Work.sink++;
        }
    }
}
