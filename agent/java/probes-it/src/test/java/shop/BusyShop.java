package shop;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Calls that submit work to other threads, each in its own way. {@code main} makes each call once.
 * Each piece of work calls {@link #work}.
 */
public final class BusyShop {
    private static final Runnable SHARED = () -> work("shared");

    public static void main(String[] arguments) throws Exception {
        BusyShop shop = new BusyShop();
        ExecutorService pool = Executors.newFixedThreadPool(2);
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1);
        shop.execute(pool);
        shop.submit(pool);
        shop.sharedFirst(pool);
        shop.sharedSecond(pool);
        shop.schedule(timer);
        shop.periodic(timer);
        shop.future();
        shop.futureOn(pool);
        shop.forkJoin();
        shop.thread();
        shop.alone();
        shop.ordered();
        shop.removed();
        if (Runtime.version().feature() >= 21) {
            shop.virtual();
            shop.virtualEach();
        }
        pool.shutdown();
        timer.shutdown();
        pool.awaitTermination(60, TimeUnit.SECONDS);
        timer.awaitTermination(60, TimeUnit.SECONDS);
    }

    static int work(String what) {
        return what.length();
    }

    void execute(ExecutorService pool) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        pool.execute(
                () -> {
                    work("execute");
                    done.countDown();
                });
        done.await();
    }

    void submit(ExecutorService pool) throws Exception {
        pool.submit(() -> work("submit")).get();
    }

    void sharedFirst(ExecutorService pool) {
        pool.execute(SHARED);
        pool.execute(SHARED);
    }

    void sharedSecond(ExecutorService pool) {
        pool.execute(SHARED);
    }

    void schedule(ScheduledExecutorService timer) throws Exception {
        timer.schedule(() -> work("schedule"), 20, TimeUnit.MILLISECONDS).get();
    }

    /**
     * The task works three times, and only the first run belongs to this call. Further runs, before
     * this thread cancels the task, do no work.
     */
    void periodic(ScheduledExecutorService timer) throws Exception {
        CountDownLatch runs = new CountDownLatch(3);
        Future<?> task =
                timer.scheduleAtFixedRate(
                        () -> {
                            if (runs.getCount() > 0) {
                                work("periodic");
                            }
                            runs.countDown();
                        },
                        0,
                        10,
                        TimeUnit.MILLISECONDS);
        runs.await();
        task.cancel(false);
    }

    void future() throws Exception {
        CompletableFuture.supplyAsync(() -> work("supply"))
                .thenApplyAsync(n -> work("apply"))
                .get();
    }

    void futureOn(ExecutorService pool) throws Exception {
        CompletableFuture.runAsync(() -> work("run"), pool).get();
    }

    void forkJoin() throws Exception {
        ForkJoinPool.commonPool().submit(() -> work("fork")).get();
    }

    void thread() throws Exception {
        Thread thread = new Thread(() -> work("thread"));
        thread.start();
        thread.join();
    }

    /** A call on the current thread is still a child of its caller. */
    void alone() {
        work("alone");
    }

    /** The queue of this pool compares the tasks, so the agent must not replace them. */
    void ordered() throws Exception {
        record Task(int rank, CountDownLatch done) implements Runnable, Comparable<Task> {
            @Override
            public void run() {
                work("ordered");
                done.countDown();
            }

            @Override
            public int compareTo(Task other) {
                return Integer.compare(rank, other.rank);
            }
        }
        CountDownLatch done = new CountDownLatch(3);
        ThreadPoolExecutor pool =
                new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new PriorityBlockingQueue<>());
        for (int rank : List.of(3, 1, 2)) {
            pool.execute(new Task(rank, done));
        }
        done.await();
        pool.shutdown();
    }

    /** Removes a task. The pool finds it only if the agent has not replaced it. */
    void removed() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);
        pool.execute(
                () -> {
                    try {
                        gate.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                });
        Runnable task = () -> work("never");
        pool.execute(task);
        if (!pool.remove(task) || pool.getQueue().size() != 0) {
            throw new IllegalStateException("the pool does not find its own task");
        }
        gate.countDown();
        pool.shutdown();
    }

    void virtual() throws Exception {
        Thread thread =
                (Thread)
                        Thread.class
                                .getMethod("startVirtualThread", Runnable.class)
                                .invoke(null, (Runnable) () -> work("virtual"));
        thread.join();
    }

    void virtualEach() throws Exception {
        ExecutorService each =
                (ExecutorService)
                        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        each.submit(() -> work("each")).get();
        each.submit(
                        () -> {
                            work("each");
                            return work("each");
                        })
                .get();
        each.shutdown();
    }
}
