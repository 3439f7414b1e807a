package app;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/** Starts virtual threads by reflection, because the tests are compiled for a JDK without them. */
final class Virtual {
    private Virtual() {}

    static void run(int count) throws Exception {
        each(count, number -> task());
    }

    static void each(int count, IntConsumer body) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            int number = at;
            Runnable task = () -> body.accept(number);
            threads.add(
                    (Thread)
                            Thread.class
                                    .getMethod("startVirtualThread", Runnable.class)
                                    .invoke(null, task));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void task() {
        for (int at = 0; at < 3; at++) {
            Body.outer();
        }
    }

    static final class Body {
        static void outer() {
            inner();
            try {
                Thread.sleep(1); // the thread may continue on another carrier thread
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
