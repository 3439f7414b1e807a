package app;

import java.util.ArrayList;
import java.util.List;

/** Programs with failures of their own: threads end early, memory runs out. */
final class Trouble {
    private static final int AT_ONCE = 8;
    private static final int FAILS_EVERY = 10;

    private Trouble() {}

    /**
     * Waits for a line on standard input, and then causes the failures. Earlier failures could
     * prevent the agent from connecting.
     */
    static void whenTold(String what, int count) throws Exception {
        Steady.waitUntilTold();
        if (what.equals("short-threads")) {
            shortThreads(count);
        } else {
            outOfMemory(count);
        }
    }

    /**
     * Runs threads that make one request and end. Every tenth thread ends with an uncaught
     * exception.
     */
    private static void shortThreads(int count) throws InterruptedException {
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> Work.sink++);
        List<Thread> running = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            boolean fails = at % FAILS_EVERY == 0;
            Thread thread = new Thread(() -> once(fails), "short-" + at);
            thread.start();
            running.add(thread);
            if (running.size() == AT_ONCE) {
                for (Thread each : running) {
                    each.join();
                }
                running.clear();
            }
        }
        for (Thread each : running) {
            each.join();
        }
    }

    private static void once(boolean fails) {
        Work.Request.handle();
        if (fails) {
            Body.fail();
        }
    }

    /** Fills the heap repeatedly while another thread makes requests. */
    private static void outOfMemory(int rounds) throws InterruptedException {
        Thread other =
                new Thread(
                        () -> {
                            for (int at = 0; at < 1_000; at++) {
                                Work.Request.handle();
                                Thread.yield();
                            }
                        },
                        "other");
        other.start();
        for (int round = 0; round < rounds; round++) {
            try {
                Body.eat();
            } catch (OutOfMemoryError e) {
                Work.sink++;
            }
            Work.Request.handle();
        }
        other.join();
    }

    static final class Body {
        static void fail() {
            throw new IllegalStateException("uncaught");
        }

        static void eat() {
            List<long[]> eaten = new ArrayList<>();
            while (true) {
                eaten.add(new long[10_000]);
                Work.Request.leaf();
            }
        }
    }
}
