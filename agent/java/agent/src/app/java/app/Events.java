package app;

import io.tachograph.api.Record;
import io.tachograph.api.Unit;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Writes declared records. */
final class Events {
    private static final Types TYPES = Events_TypesRecords.get();
    private static final int ALLOCATION_RECORDS = 100_000;

    private Events() {}

    enum Color {
        RED,
        GREEN {
            @Override
            public String toString() {
                return "not this";
            }
        }
    }

    @Record("app")
    interface Types {
        void every(
                boolean truth,
                byte tiny,
                short small,
                int middle,
                long great,
                float rough,
                @Unit("m/s") double fine,
                String text,
                CharSequence chars,
                Color color,
                UUID id,
                Instant at,
                Duration took);

        @Record("app_order_placed")
        void order(int thread, int number, String customer);

        void none();
    }

    @Record
    record CartEmptied(long cart, @Unit("EUR") double total) {}

    @Record
    record Fragile(int value) {
        @Override
        public int value() {
            throw new UnsupportedOperationException("mischief");
        }
    }

    /** The methods of this class are recorded, unlike those of the surrounding class. */
    static final class Shop {
        private Shop() {}

        static void buy(int thread, int number) {
            TYPES.order(thread, number, "ada");
        }
    }

    static void run(String[] arguments) throws Exception {
        int count = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0;
        switch (arguments[1]) {
            case "every" -> every();
            case "threads" -> threads(count, 500);
            case "virtual" -> Virtual.each(count, number -> write(number, 3));
            case "burst" -> burst(count);
            case "until-told" -> untilTold();
            case "allocation" -> allocation();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static void every() {
        UUID id = UUID.fromString("0123e456-7890-abcd-ef01-234567890abc");
        StringBuilder chars = new StringBuilder("größe 漢字 🚀");
        Instant at = Instant.parse("2024-02-29T23:59:59.999999999Z");
        TYPES.every(
                true,
                Byte.MAX_VALUE,
                Short.MAX_VALUE,
                Integer.MAX_VALUE,
                Long.MAX_VALUE,
                0.1f,
                Double.MIN_VALUE,
                "x".repeat(5_000),
                chars,
                Color.GREEN,
                id,
                at,
                Duration.ofMillis(1_500));
        chars.setLength(0); // the record keeps the earlier content of chars
        TYPES.every(
                false,
                Byte.MIN_VALUE,
                Short.MIN_VALUE,
                Integer.MIN_VALUE,
                Long.MIN_VALUE,
                Float.NEGATIVE_INFINITY,
                Double.NaN,
                null,
                null,
                null,
                null,
                Instant.MAX,
                Duration.ofSeconds(-1, 1));
        TYPES.none();
        CharSequence bad =
                new CharSequence() {
                    @Override
                    public int length() {
                        return 0;
                    }

                    @Override
                    public char charAt(int index) {
                        return 0;
                    }

                    @Override
                    public CharSequence subSequence(int from, int to) {
                        return this;
                    }

                    @Override
                    public String toString() {
                        throw new IllegalStateException("mischief");
                    }
                };
        for (int times = 0; times < 3; times++) {
            TYPES.every(true, (byte) 0, (short) 0, 0, 0, 0, 0, "", bad, null, null, null, null);
        }
        Events_FragileRecord.write(new Fragile(1));
        CartEmptiedRecords.write();
    }

    private static final class CartEmptiedRecords {
        static void write() {
            Events_CartEmptiedRecord.write(17, 9.5);
            Events_CartEmptiedRecord.write(new CartEmptied(18, -0.0));
            Events_CartEmptiedRecord.write(null);
        }
    }

    private static void write(int thread, int records) {
        for (int number = 0; number < records; number++) {
            if (number % 2 == 0) {
                Shop.buy(thread, number);
            } else {
                TYPES.order(thread, number, "bob");
            }
        }
    }

    private static void threads(int count, int records) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            int number = at;
            threads.add(new Thread(() -> write(number, records)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void burst(int count) {
        for (int number = 0; number < count; number++) {
            TYPES.order(0, number, "ada");
        }
    }

    /**
     * Writes records until a line arrives on standard input. A test may attach an agent in the
     * meantime.
     */
    private static void untilTold() throws Exception {
        System.out.println("ready");
        for (int number = 0; System.in.available() == 0; number++) {
            TYPES.order(0, number, "ada");
            Thread.sleep(1);
        }
    }

    private static void allocation() {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int round = 0; round < 8; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            burst(ALLOCATION_RECORDS);
            long bytes = threads.getCurrentThreadAllocatedBytes() - before;
            System.out.println("bytes " + bytes);
        }
    }
}
