package shop;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RejectedExecutionHandler;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Task objects that are submitted repeatedly: by recorded calls ({@link #a}, {@link #b}) and by
 * unrecorded code. The work of each scenario is its own method, so the method identifies the runs.
 */
public final class ReusedTask {
    static final int TIMES = 200;

    /** A pool whose first thread is blocked until the gate is opened. */
    private static final class Gated extends ThreadPoolExecutor {
        private final CountDownLatch gate = new CountDownLatch(1);

        Gated(BlockingQueue<Runnable> queue, int threadsMax, RejectedExecutionHandler handler)
                throws InterruptedException {
            super(1, threadsMax, 1, TimeUnit.MINUTES, queue, handler);
            CountDownLatch begun = new CountDownLatch(1);
            execute(() -> hold(begun, gate));
            begun.await();
        }

        Gated() throws InterruptedException {
            this(new LinkedBlockingQueue<>(), 1, new AbortPolicy());
        }

        void open() {
            gate.countDown();
        }

        void end() throws InterruptedException {
            open();
            finish(this);
        }
    }

    static final class Filler implements Runnable {
        @Override
        public void run() {
            // This task only occupies a place in a queue.
        }
    }

    /** All instances compare as equal, so a sorting queue cannot order them. */
    record Equal(Runnable work) implements Runnable, Comparable<Equal> {
        @Override
        public void run() {
            work.run();
        }

        @Override
        public int compareTo(Equal other) {
            return 0;
        }
    }

    private static void hold(CountDownLatch begun, CountDownLatch gate) {
        begun.countDown();
        try {
            gate.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void finish(ExecutorService pool) throws InterruptedException {
        pool.shutdown();
        if (!pool.awaitTermination(1, TimeUnit.MINUTES)) {
            throw new IllegalStateException("the pool does not end");
        }
    }

    // ---- submitters ----

    static void a(Executor pool, Runnable task) {
        pool.execute(task);
    }

    static void b(Executor pool, Runnable task) {
        pool.execute(task);
    }

    static Thread thread(Runnable task) {
        Thread thread = new Thread(task);
        thread.start();
        return thread;
    }

    // ---- work ----

    static void untracedFirst() {}

    static void taken() {}

    static void twoPools() {}

    static void removed() {}

    static void drained() {}

    static void aborted() {}

    static void ranByCaller() {}

    static void discarded() {}

    static void oldestDiscarded() {}

    static void newThread() {}

    static void withoutOrder() {}

    static void putByHandler() {}

    static void lostByHandler() {}

    static void takenUnseen() {}

    static void scheduled() {}

    static void periodic() {}

    static void forked() {}

    static void common() {}

    static void future() {}

    static void started() {}

    static void virtual() {}

    static void together() {}

    // ---- scenarios ----

    public static void main(String[] arguments) throws Exception {
        order();
        leaving();
        refusals();
        handlers();
        others();
        all(new Gated());
    }

    private static void order() throws Exception {
        Gated pool = new Gated();
        Runnable untracedFirst = ReusedTask::untracedFirst;
        pool.execute(untracedFirst);
        a(pool, untracedFirst);
        pool.end();

        pool = new Gated();
        Runnable taken = ReusedTask::taken;
        a(pool, taken);
        a(pool, taken);
        pool.execute(taken);
        b(pool, taken);
        pool.execute(taken);
        pool.execute(taken);
        a(pool, taken);
        pool.end();

        Gated first = new Gated();
        Gated second = new Gated();
        Runnable twoPools = ReusedTask::twoPools;
        a(first, twoPools);
        b(second, twoPools);
        second.end();
        first.end();

        // The first submission goes into the queue, the second into a new thread.
        pool = new Gated(new ArrayBlockingQueue<>(1), 2, new ThreadPoolExecutor.AbortPolicy());
        CountDownLatch ran = new CountDownLatch(1);
        Runnable newThread =
                () -> {
                    newThread();
                    ran.countDown();
                };
        a(pool, newThread);
        b(pool, newThread);
        ran.await();
        pool.end();

        pool = new Gated(new PriorityBlockingQueue<>(), 1, new ThreadPoolExecutor.AbortPolicy());
        Runnable equal = new Equal(ReusedTask::withoutOrder);
        a(pool, equal);
        b(pool, equal);
        pool.end();
        pool = new Gated(new PriorityBlockingQueue<>(), 1, new ThreadPoolExecutor.AbortPolicy());
        b(pool, equal);
        pool.end();
    }

    private static void leaving() throws Exception {
        Gated pool = new Gated();
        Runnable removed = ReusedTask::removed;
        a(pool, removed);
        if (!pool.remove(removed)) {
            throw new IllegalStateException("the pool does not find its own task");
        }
        pool.execute(removed);
        b(pool, removed);
        pool.end();

        BlockingQueue<Runnable> queue = new LinkedBlockingQueue<>();
        pool = new Gated(queue, 1, new ThreadPoolExecutor.AbortPolicy());
        Runnable drained = ReusedTask::drained;
        a(pool, drained);
        pool.execute(drained);
        if (pool.shutdownNow().get(0) != drained) {
            throw new IllegalStateException("the pool does not return its own task");
        }
        pool.end();
        pool = new Gated(queue, 1, new ThreadPoolExecutor.AbortPolicy());
        pool.execute(drained);
        b(pool, drained);
        pool.end();

        // The program empties the queue directly. The agent detects the empty queue at a
        // submission, if the previous submission is more than five seconds old.
        pool = new Gated();
        Runnable takenUnseen = ReusedTask::takenUnseen;
        a(pool, takenUnseen);
        pool.getQueue().clear();
        awaitSeconds(5);
        pool.execute(takenUnseen);
        b(pool, takenUnseen);
        pool.end();
    }

    /** Waits until more than this time has passed on the clock that the agent uses. */
    private static void awaitSeconds(int seconds) throws InterruptedException {
        long since = System.nanoTime();
        while (System.nanoTime() - since <= seconds * 1_000_000_000L) {
            Thread.sleep(10);
        }
    }

    private static Gated full(RejectedExecutionHandler handler) throws InterruptedException {
        Gated pool = new Gated(new ArrayBlockingQueue<>(1), 1, handler);
        pool.execute(new Filler());
        return pool;
    }

    /**
     * Submits the task again, first by unrecorded code and then by {@link #b}, each time when the
     * queue is empty.
     */
    private static void again(Gated pool, Runnable task) throws InterruptedException {
        pool.open();
        while (pool.getQueue().size() > 0) {
            Thread.sleep(1);
        }
        pool.execute(task);
        while (pool.getQueue().size() > 0) {
            Thread.sleep(1);
        }
        b(pool, task);
        pool.end();
    }

    private static void refusals() throws Exception {
        Gated pool = full(new ThreadPoolExecutor.AbortPolicy());
        Runnable aborted = ReusedTask::aborted;
        try {
            a(pool, aborted);
            throw new IllegalStateException("the pool is not full");
        } catch (RejectedExecutionException e) {
            // Expected.
        }
        again(pool, aborted);

        pool = full(new ThreadPoolExecutor.CallerRunsPolicy());
        Runnable ranByCaller = ReusedTask::ranByCaller;
        a(pool, ranByCaller);
        again(pool, ranByCaller);

        pool = full(new ThreadPoolExecutor.DiscardPolicy());
        Runnable discarded = ReusedTask::discarded;
        a(pool, discarded);
        again(pool, discarded);

        BlockingQueue<Runnable> one = new ArrayBlockingQueue<>(1);
        pool = new Gated(one, 1, new ThreadPoolExecutor.DiscardOldestPolicy());
        Runnable oldestDiscarded = ReusedTask::oldestDiscarded;
        a(pool, oldestDiscarded);
        b(pool, oldestDiscarded);
        pool.end();
    }

    /** Rejection handlers of the program. */
    private static void handlers() throws Exception {
        Gated pool =
                full(
                        (task, full) -> {
                            ((Gated) full).open();
                            try {
                                full.getQueue().put(task);
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                        });
        a(pool, ReusedTask::putByHandler);
        pool.end();

        pool = full((task, full) -> {});
        Runnable lostByHandler = ReusedTask::lostByHandler;
        a(pool, lostByHandler);
        pool.open();
        while (pool.getQueue().size() > 0) {
            Thread.sleep(1);
        }
        pool.execute(lostByHandler);
        pool.end();
    }

    /** For each of these submissions there is a new object: a task of the JDK, or a thread. */
    private static void others() throws Exception {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1);
        Runnable scheduled = ReusedTask::scheduled;
        timer.schedule(scheduled, 300, TimeUnit.MILLISECONDS);
        a(task -> timer.schedule(task, 1, TimeUnit.MILLISECONDS), scheduled);
        CountDownLatch runs = new CountDownLatch(3);
        Runnable periodic =
                () -> {
                    if (runs.getCount() > 0) {
                        periodic();
                    }
                    runs.countDown();
                };
        a(task -> timer.scheduleAtFixedRate(task, 0, 1, TimeUnit.MILLISECONDS), periodic);
        runs.await();
        finish(timer);

        ForkJoinPool forks = new ForkJoinPool(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        forks.execute(() -> hold(begun, gate));
        begun.await();
        Runnable forked = ReusedTask::forked;
        forks.execute(forked);
        a(forks, forked);
        gate.countDown();
        finish(forks);

        Runnable common = ReusedTask::common;
        CompletableFuture.runAsync(common).get();
        a(task -> CompletableFuture.runAsync(task).join(), common);

        Gated pool = new Gated();
        Runnable future = ReusedTask::future;
        CompletableFuture.runAsync(future, pool);
        a(task -> CompletableFuture.runAsync(task, pool), future);
        pool.end();

        Runnable started = ReusedTask::started;
        Thread untraced = new Thread(started);
        untraced.start();
        untraced.join();
        thread(started).join();

        if (Runtime.version().feature() >= 21) {
            ExecutorService each =
                    (ExecutorService)
                            java.util.concurrent.Executors.class
                                    .getMethod("newVirtualThreadPerTaskExecutor")
                                    .invoke(null);
            Runnable virtual = ReusedTask::virtual;
            each.submit(virtual).get();
            a(task -> finished(each, task), virtual);
            finish(each);
        }
    }

    private static void finished(ExecutorService pool, Runnable task) {
        try {
            pool.submit(task).get();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Three threads, one of them unrecorded, submit the same object. */
    private static void all(Gated pool) throws Exception {
        Runnable task = ReusedTask::together;
        Thread[] threads = {
            new Thread(() -> repeat(() -> a(pool, task))),
            new Thread(() -> repeat(() -> b(pool, task))),
            new Thread(() -> repeat(() -> pool.execute(task)))
        };
        for (Thread thread : threads) {
            thread.start();
        }
        pool.open();
        for (Thread thread : threads) {
            thread.join();
        }
        pool.end();
    }

    private static void repeat(Runnable what) {
        for (int at = 0; at < TIMES; at++) {
            what.run();
        }
    }
}
