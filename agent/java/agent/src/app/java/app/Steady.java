package app;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Programs that wait for lines on standard input. */
final class Steady {
    private static final int LAST_REQUESTS = 500;

    private static volatile boolean told;

    private Steady() {}

    /**
     * Makes requests in the given number of threads, with a pause after each, until a line arrives
     * on standard input. Then one more thread makes {@link #LAST_REQUESTS} requests.
     *
     * @param pause ns
     */
    static void run(int threads, long pause) throws Exception {
        List<Thread> workers = new ArrayList<>();
        for (int at = 0; at < threads; at++) {
            Thread worker = new Thread(() -> requests(pause), "worker-" + at);
            worker.start();
            workers.add(worker);
        }
        waitUntilTold();
        for (Thread worker : workers) {
            worker.join();
        }
        Thread last =
                new Thread(
                        () -> {
                            for (int at = 0; at < LAST_REQUESTS; at++) {
                                Work.Request.handle();
                            }
                        },
                        "last");
        last.start();
        last.join();
        System.out.println("last " + LAST_REQUESTS);
    }

    private static void requests(long pause) {
        long count = 0;
        while (!told) {
            Work.Request.handle();
            count++;
            LockSupport.parkNanos(pause);
        }
        System.out.println("requests " + count);
    }

    /**
     * Recurses slowly, down to the given depth and back. After a line on standard input, recurses
     * again, to depth 3.
     */
    static void recursion(int depth) throws Exception {
        System.out.println("result " + Slow.down(depth));
        waitUntilTold();
        Slow.down(3);
    }

    static final class Slow {
        private final int value;

        /**
         * Part of the recursion, because the agent instruments constructors in another way than
         * methods.
         */
        Slow(int depth) throws InterruptedException {
            Thread.sleep(5);
            value = depth <= 1 ? 1 : 1 + down(depth - 1);
            Thread.sleep(5);
        }

        static int down(int depth) throws InterruptedException {
            Thread.sleep(5);
            int value = depth <= 1 ? 1 : new Slow(depth - 1).value;
            Thread.sleep(5);
            return value;
        }
    }

    /** Loads a class when a line arrives, and ends when another line arrives. */
    static void later() throws Exception {
        System.out.println("ready");
        waitUntilTold();
        for (int at = 0; at < 3; at++) {
            Late.call();
        }
        System.out.println("called");
        waitUntilTold();
    }

    static final class Late {
        static void call() {
            Work.sink++;
        }
    }

    static void tellLater() {
        Thread listener =
                new Thread(
                        () -> {
                            try {
                                waitUntilTold();
                            } catch (Exception e) {
                                told = true;
                            }
                        },
                        "listener");
        listener.setDaemon(true);
        listener.start();
    }

    static boolean isTold() {
        return told;
    }

    static void waitUntilTold() throws Exception {
        int c;
        do {
            c = System.in.read();
        } while (c != '\n' && c >= 0);
        told = true;
    }
}
