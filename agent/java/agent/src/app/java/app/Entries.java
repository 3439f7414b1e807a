package app;

import io.tachograph.api.Record;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs four kinds of traces, some of them very often, and prints the number of traces of each kind.
 */
final class Entries {
    private static final Noted NOTED = Entries_NotedRecords.get();
    private static final Map<String, LongAdder> MADE = new ConcurrentHashMap<>();

    private Entries() {}

    @Record("app_noted")
    interface Noted {
        void rare(int number);
    }

    /**
     * Runs until a line arrives on standard input. Two threads run the hot operation. A third
     * thread submits tasks, and in a fourth thread the hot operation fails. The current thread runs
     * the rare operation.
     */
    static void run() throws Exception {
        Steady.tellLater();
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Thread> threads = new ArrayList<>();
        threads.add(repeat(100, "hot", () -> Traces.hot(false)));
        threads.add(repeat(100, "hot", () -> Traces.hot(false)));
        threads.add(repeat(5_000, "hands", () -> Traces.hands(pool)));
        threads.add(repeat(5_000, "fails", Entries::fail));
        while (!Steady.isTold()) {
            Traces.rare((int) count("rare"));
            Thread.sleep(1_200);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        pool.shutdown();
        if (!pool.awaitTermination(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("tasks are left");
        }
        MADE.forEach((name, made) -> System.out.println(name + " " + made));
    }

    private static long count(String name) {
        LongAdder made = MADE.computeIfAbsent(name, missing -> new LongAdder());
        made.increment();
        return made.sum();
    }

    private static Thread repeat(long pauseMicros, String name, Runnable body) {
        Thread thread =
                new Thread(
                        () -> {
                            while (!Steady.isTold()) {
                                body.run();
                                count(name);
                                LockSupport.parkNanos(pauseMicros * 1_000);
                            }
                        },
                        name);
        thread.start();
        return thread;
    }

    private static void fail() {
        try {
            Traces.hot(true);
        } catch (IllegalStateException e) {
            Work.sink++;
        }
    }

    /** The methods of this class are recorded, unlike those of the surrounding class. */
    static final class Traces {
        private Traces() {}

        static void hot(boolean fails) {
            step();
            step();
            if (fails) {
                throw new IllegalStateException("hot");
            }
        }

        static void step() {
            tiny();
        }

        static void tiny() {
            Work.sink++;
        }

        static void rare(int number) {
            NOTED.rare(number);
            step();
        }

        static void hands(ExecutorService pool) {
            pool.execute(Traces::piece);
            pool.execute(Traces::piece);
            new Thread(Traces::piece, "piece").start();
            step();
        }

        static void piece() {
            step();
        }
    }
}
