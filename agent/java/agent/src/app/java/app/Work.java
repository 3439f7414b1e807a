package app;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.concurrent.CountDownLatch;

/** The program that the tests observe. Its first argument selects the action. */
public final class Work {
    static volatile int sink;

    private Work() {}

    /** A pattern of the tests selects methods with this annotation. */
    @Retention(RetentionPolicy.RUNTIME)
    public @interface Watched {}

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "shapes" -> shapes();
            case "stack-overflow" -> overflow();
            case "loop" -> loop(Integer.parseInt(arguments[1]), Long.parseLong(arguments[2]));
            case "burst" -> burst(Integer.parseInt(arguments[1]));
            case "sleep" -> sleep(Integer.parseInt(arguments[1]));
            case "threads" ->
                    threads(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
            case "virtual" -> Virtual.run(Integer.parseInt(arguments[1]));
            case "busy-virtual" -> Busy.virtual(Integer.parseInt(arguments[1]));
            case "handing" -> Busy.handing(Integer.parseInt(arguments[1]));
            case "allocation" -> Allocation.run();
            case "watched" -> new Marked().plain();
            case "until-told" -> {
                long pause = arguments.length > 2 ? Long.parseLong(arguments[2]) : 100_000;
                Steady.run(Integer.parseInt(arguments[1]), pause);
            }
            case "recursion" -> Steady.recursion(Integer.parseInt(arguments[1]));
            case "later" -> Steady.later();
            case "short-threads", "out-of-memory" ->
                    Trouble.whenTold(arguments[0], Integer.parseInt(arguments[1]));
            case "loaders" -> Loaders.run();
            case "entries" -> Entries.run();
            case "named" -> named(arguments[1]);
            case "records" -> Events.run(arguments);
            case "price" -> Price.run(Integer.parseInt(arguments[1]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("end");
    }

    // ---- shapes ----

    private static void shapes() {
        Calls calls = new Calls(3);
        calls.ok();
        attempt(calls::fails);
        attempt(() -> new Calls(-1));
        attempt(() -> new Child(-1));
        new Child(1);
        calls.größe漢字("🚀", new int[0]);
        calls.down(1_000);
        calls.mischief();
    }

    private static void attempt(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            sink++;
        }
    }

    static class Calls {
        final int value;

        Calls(int value) {
            this.value = value;
            if (value < 0) {
                throw new IllegalArgumentException("negativ: ö 漢 😀");
            }
        }

        void ok() {
            Runnable body = () -> helper(1);
            body.run();
            helper(2);
        }

        static void helper(int step) {
            sink += step;
        }

        void fails() {
            inner();
        }

        private void inner() {
            throw new IllegalStateException("boom");
        }

        int größe漢字(String text, int[] numbers) {
            return text.length() + numbers.length;
        }

        int down(int depth) {
            return depth <= 1 ? value : 1 + down(depth - 1);
        }

        void mischief() {
            try {
                evil();
            } catch (RuntimeException e) {
                sink++;
            }
        }

        /** Throws an exception with a method that the agent must not call. */
        private void evil() {
            throw new RuntimeException("raw") {
                @Override
                public String getMessage() {
                    System.out.println("getMessage was run");
                    throw new IllegalStateException("from getMessage");
                }
            };
        }
    }

    static final class Child extends Calls {
        Child(int value) {
            super(value);
            helper(value);
        }
    }

    static final class Marked {
        @Watched
        void marked() {
            sink++;
        }

        void plain() {
            marked();
        }
    }

    // ---- loads ----

    private static void overflow() {
        for (int round = 0; round < 20; round++) {
            try {
                Endless.step(0);
            } catch (StackOverflowError e) {
                sink++;
            }
            Endless.after();
        }
    }

    static final class Endless {
        static int step(int depth) {
            return step(depth + 1) + 1;
        }

        static void after() {
            sink++;
        }
    }

    /**
     * Repeats two actions until a line arrives on standard input: runs the class {@code name},
     * which the test has compiled, and makes a request.
     */
    private static void named(String name) throws Exception {
        Steady.tellLater();
        Runnable run = (Runnable) Class.forName(name).getConstructor().newInstance();
        while (!Steady.isTold()) {
            run.run();
            Request.handle();
            Thread.sleep(1);
        }
        run.run();
        System.out.println("sink " + sink);
    }

    /**
     * Repeats a request and a pause of {@code pauseMs} for {@code seconds}, and prints the number
     * of requests and the duration of the longest one.
     */
    private static void loop(int seconds, long pauseMs) throws InterruptedException {
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        long longest = 0;
        long count = 0;
        while (System.nanoTime() < until) {
            long begin = System.nanoTime();
            Request.handle();
            longest = Math.max(longest, System.nanoTime() - begin);
            count++;
            Thread.sleep(pauseMs);
        }
        System.out.println("count " + count + " longest_us " + longest / 1_000);
    }

    private static void burst(int count) {
        long begin = System.nanoTime();
        for (int at = 0; at < count; at++) {
            Request.handle();
        }
        System.out.println("count " + count + " ms " + (System.nanoTime() - begin) / 1_000_000);
    }

    private static void sleep(int seconds) throws InterruptedException {
        Request.handle();
        System.out.println("ready");
        Request.open(seconds);
    }

    private static void threads(int threads, int count) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(threads);
        for (int at = 0; at < threads; at++) {
            new Thread(
                            () -> {
                                for (int request = 0; request < count; request++) {
                                    Request.handle();
                                }
                                done.countDown();
                            },
                            "worker-" + at)
                    .start();
        }
        done.await();
    }

    /** Makes ten calls per request. */
    static final class Request {
        static void handle() {
            for (int at = 0; at < 3; at++) {
                middle();
            }
        }

        static void middle() {
            leaf();
            leaf();
        }

        static void leaf() {
            sink++;
        }

        static void open(int seconds) throws InterruptedException {
            leaf();
            Thread.sleep(seconds * 1_000L);
        }
    }
}
