package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.HandedCall;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.core.wire.DeclaredRecord;
import io.tachograph.core.wire.Dictionary;
import io.tachograph.core.wire.Wire;
import io.tachograph.testing.Call;
import io.tachograph.testing.Decoder;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;

/**
 * Several threads make random nested calls, with exceptions and missed exits. The decoded records
 * must be exactly these calls, without the subtrees that were dropped and counted. A seed makes a
 * run repeatable, except for the scheduling of threads.
 */
class RingTest {
    private static final int THREADS = 4;
    private static final int ROOTS = 400;

    private static final class Node {
        String name;
        boolean failed;
        final List<Node> children = new ArrayList<>();

        Node(String name) {
            this.name = name;
        }

        String shape() {
            String inside = children.stream().map(Node::shape).collect(Collectors.joining(" "));
            return name + (failed ? "!" : "") + (children.isEmpty() ? "" : "(" + inside + ")");
        }
    }

    private static final class Caller extends Thread {
        final List<Node> roots = new ArrayList<>();
        final Random random;
        final Buffers buffers;
        long entered;
        volatile Throwable fault;

        /** The calls that another thread must end; null if each call ends on its own thread. */
        Queue<Runnable> handed;

        Caller(Buffers buffers, int number, long seed) {
            super("caller-" + number);
            this.buffers = buffers;
            this.random = new Random(seed + number);
        }

        @Override
        public void run() {
            try {
                for (int at = 0; at < ROOTS; at++) {
                    ThreadBuffer buffer = buffers.current();
                    Node root = new Node("root");
                    roots.add(root);
                    call(buffer, root, 0, random.nextInt(20) == 0 ? 300 : 6);
                }
            } catch (Throwable e) {
                fault = e;
            }
        }

        /**
         * Renames the call with some probability, and may leave the end of an outermost call to
         * another thread. Does nothing if {@link #handed} is null.
         *
         * @return true if another thread ends the call
         */
        private boolean isHanded(ThreadBuffer buffer, int token, Node node) {
            if (handed == null) {
                return false;
            }
            if (random.nextInt(3) == 0) {
                // The id of the new name may be longer or shorter than that of the first name.
                node.name = "renamed " + random.nextInt(400);
                int operation = Operations.shared().id(Operations.METHOD, node.name);
                buffer.rename(token, operation);
            }
            HandedCall call = new HandedCall(buffers);
            if (token != 1 || random.nextInt(2) == 0 || !buffer.leave(token, call)) {
                return false;
            }
            if (random.nextBoolean()) {
                node.name = "at last " + random.nextInt(400);
            }
            int operation = Operations.shared().id(Operations.METHOD, node.name);
            boolean failed = node.failed;
            handed.add(() -> call.end(operation, failed, null));
            return true;
        }

        /**
         * Makes the call {@code node}, with random calls inside it.
         *
         * @return true if the exit of this call was missed, as after a stack overflow; the caller
         *     then makes no further calls and fails
         */
        private boolean call(ThreadBuffer buffer, Node node, int depth, int depthMax) {
            int token = buffer.enter(Operations.shared().id(Operations.METHOD, node.name));
            entered++;
            if (random.nextInt(10) == 0) {
                buffer.attribute(token, "key", "value " + random.nextInt(5));
                buffer.attribute(token, "number", random.nextLong());
            }
            int width = depth >= depthMax ? 0 : depthMax > 6 ? 1 : random.nextInt(4);
            boolean thrown = random.nextInt(8) == 0;
            for (int at = 0; at < width; at++) {
                Node child = new Node("d" + depth + "c" + at);
                node.children.add(child);
                if (call(buffer, child, depth + 1, depthMax)) {
                    thrown = true;
                    break;
                }
            }
            node.failed = thrown;
            if (depth > 0 && random.nextInt(200) == 0) {
                node.failed = true;
                return true;
            }
            if (isHanded(buffer, token, node)) {
                return false;
            }
            if (thrown) {
                buffer.exitFailed(
                        token, random.nextBoolean() ? new IllegalStateException("x") : null);
            } else {
                buffer.exit(token);
            }
            return false;
        }
    }

    private final Session session = new Session(0x0102030405060708L, 0x1112131415161718L);
    private final Dictionary dictionary = new Dictionary(Operations.shared());
    private Outbox outbox = new Outbox(dictionary, 1L << 30);
    private final Totals totals = new Totals();
    private Duration set = Duration.ZERO;
    private final WallClock clock = new WallClock(() -> Instant.now().plus(set));
    private final Map<ThreadBuffer, RingReader> readers = new IdentityHashMap<>();
    private final Decoder decoder = new Decoder(session);
    private int dictionarySent;
    private final Queue<Runnable> handed = new ConcurrentLinkedQueue<>();
    private HandedCalls handedCalls = new HandedCalls(outbox, totals, dictionary);
    private boolean handsOver;

    private void drain(Buffers buffers) {
        long[] words = {1};
        while (words[0] > 0) {
            words[0] = 0;
            read(buffers, words);
            for (Runnable end = handed.poll(); end != null; end = handed.poll()) {
                end.run();
                words[0]++;
            }
            handedCalls.write(buffers);
            send();
        }
    }

    private void read(Buffers buffers, long[] words) {
        buffers.forEach(
                buffer ->
                        words[0] +=
                                readers.computeIfAbsent(
                                                buffer,
                                                made ->
                                                        new RingReader(
                                                                made,
                                                                outbox,
                                                                clock,
                                                                totals,
                                                                new CallCounts(),
                                                                dictionary,
                                                                new DeclaredRecord(
                                                                        dictionary, Map.of())))
                                        .read());
    }

    private void send() {
        outbox.close();
        for (Outbox.Sent frame = outbox.next(); frame != null; frame = outbox.next()) {
            while (dictionarySent < frame.dictionarySize) {
                byte[] definitions = dictionary.frame(dictionarySent, frame.dictionarySize);
                decoder.dict(
                        Arrays.copyOfRange(
                                definitions, Wire.FRAME_HEADER_BYTES, definitions.length));
                dictionarySent = dictionary.end(dictionarySent, frame.dictionarySize);
            }
            decoder.data(
                    Arrays.copyOfRange(frame.frame, Wire.FRAME_HEADER_BYTES, frame.frame.length));
            outbox.sent();
            outbox.acknowledge(frame.seq);
        }
    }

    private List<Caller> run(long seed, Buffers.Options options) throws InterruptedException {
        Buffers buffers = new Buffers(session, options);
        List<Caller> callers = new ArrayList<>();
        for (int at = 0; at < THREADS; at++) {
            callers.add(new Caller(buffers, at, seed));
            callers.get(at).handed = handsOver ? handed : null;
        }
        callers.forEach(Thread::start);
        while (callers.stream().anyMatch(Thread::isAlive)) {
            drain(buffers);
            buffers.sleep(100_000);
        }
        drain(buffers);
        callers.forEach(caller -> assertEquals(null, caller.fault));
        long[] dropped = {buffers.callsDroppedWithoutBuffer()};
        buffers.forEach(buffer -> dropped[0] += buffer.callsDropped());
        if (buffers.traces() != null) {
            buffers.forEach(buffer -> dropped[0] += buffer.gate().callsUnsampled());
        }
        assertEquals(
                callers.stream().mapToLong(caller -> caller.entered).sum(),
                decoder.callsEnded + dropped[0]);
        decoder.roots.forEach(RingTest::assertTimes);
        return callers;
    }

    private static void assertTimes(Call call) {
        assertTrue(call.end != null && call.start <= call.end);
        for (Call child : call.children) {
            assertTrue(
                    call.start <= child.start && child.end <= call.end,
                    "a call begins before or ends after its caller");
            assertTimes(child);
        }
    }

    private Map<String, List<Call>> byThread() {
        Map<String, List<Call>> roots = new HashMap<>();
        decoder.roots.forEach(
                root -> roots.computeIfAbsent(root.thread, name -> new ArrayList<>()).add(root));
        return roots;
    }

    @ParameterizedTest
    @CsvSource({"1,65536,1000000000", "2,4096,1000000000", "3,1024,1000000000", "4,65536,2000"})
    void noCallIsLostWhenCallersMayWait(long seed, int words, long queue) throws Exception {
        outbox = new Outbox(dictionary, queue, true);
        Buffers.Options options = new Buffers.Options();
        options.words = words;
        options.blockNanos = 60_000_000_000L;
        List<Caller> callers = run(seed, options);
        Map<String, List<Call>> roots = byThread();
        for (Caller caller : callers) {
            assertEquals(
                    caller.roots.stream().map(Node::shape).toList(),
                    roots.get(caller.getName()).stream().map(Call::shape).toList());
        }
    }

    @ParameterizedTest
    @CsvSource({"13", "14"})
    void callsMayBeRenamedAndEndOnAnotherThread(long seed) throws Exception {
        outbox = new Outbox(dictionary, 1_000_000_000, true);
        handedCalls = new HandedCalls(outbox, totals, dictionary);
        handsOver = true;
        Buffers.Options options = new Buffers.Options();
        options.words = 1 << 20; // all calls fit
        List<Caller> callers = run(seed, options);
        Map<String, List<Call>> roots = byThread();
        for (Caller caller : callers) {
            assertEquals(
                    caller.roots.stream().map(Node::shape).toList(),
                    roots.get(caller.getName()).stream().map(Call::shape).toList());
        }
    }

    @ParameterizedTest
    @CsvSource({"4,64", "5,128", "6,512", "7,2048"})
    void onlyWholeSubtreesAreDropped(long seed, int words) throws Exception {
        Buffers.Options options = new Buffers.Options();
        options.words = words;
        List<Caller> callers = run(seed, options);
        Map<String, List<Call>> roots = byThread();
        for (Caller caller : callers) {
            List<Call> got = roots.getOrDefault(caller.getName(), List.of());
            int next = 0;
            for (Call root : got) {
                while (next < caller.roots.size() && !isPruned(caller.roots.get(next), root)) {
                    next++;
                }
                assertTrue(
                        next < caller.roots.size(),
                        () -> "the program did not make this call: " + root.shape());
                next++;
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"9,1", "10,100", "11,1000", "12,100000"})
    void tracesAreRecordedWholeOrNotAtAll(long seed, int tracesMax) throws Exception {
        outbox = new Outbox(dictionary, 1_000_000_000, true);
        Buffers.Options options = new Buffers.Options();
        options.words = 65_536;
        options.blockNanos = 60_000_000_000L;
        options.tracesMax = tracesMax;
        List<Caller> callers = run(seed, options);
        Map<String, List<Call>> roots = byThread();
        // No TraceKeeper renews the shares. So the first trace of the operation is recorded, and as
        // many further traces as the limit permits in one second.
        assertEquals(Math.min(THREADS * ROOTS, tracesMax + 1), decoder.roots.size());
        for (Caller caller : callers) {
            Iterator<Node> made = caller.roots.iterator();
            for (Call got : roots.getOrDefault(caller.getName(), List.of())) {
                boolean isThere = false;
                while (!isThere && made.hasNext()) {
                    isThere = made.next().shape().equals(got.shape());
                }
                assertTrue(isThere, () -> "the program did not make this trace: " + got.shape());
            }
        }
    }

    /** True if {@code got} is {@code made}, or {@code made} without some of its subtrees. */
    private static boolean isPruned(Node made, Call got) {
        if (!made.name.equals(got.operation) || made.failed != got.failed) {
            return false;
        }
        int next = 0;
        for (Call child : got.children) {
            while (next < made.children.size() && !isPruned(made.children.get(next), child)) {
                next++;
            }
            if (next == made.children.size()) {
                return false;
            }
            next++;
        }
        return true;
    }

    @ParameterizedTest
    @CsvSource({"8,2"})
    void eachCallIsRecordedOrCountedWithALowLimitOfThreads(long seed, int threadsMax)
            throws Exception {
        Buffers.Options options = new Buffers.Options();
        // The limit is rounded up to 64 buffers, enough for all callers.
        options.threadsMax = threadsMax;
        List<Caller> callers = run(seed, options);
        assertFalse(callers.isEmpty());
    }

    /** Long attributes divide a segment into parts, so that no frame exceeds the server's limit. */
    @Test
    void longAttributesMakeNoLongFrame() {
        Buffers.Options options = new Buffers.Options();
        options.words = 1 << 16;
        Buffers buffers = new Buffers(session, options);
        ThreadBuffer buffer = buffers.current();
        int operation = Operations.shared().id(Operations.METHOD, "m");
        int root = buffer.enter(operation);
        for (int at = 0; at < 1_500; at++) {
            int call = buffer.enter(operation);
            buffer.attribute(call, "key", at + "x".repeat(4_000));
            buffer.exit(call);
        }
        buffer.exit(root);
        long[] words = {0};
        read(buffers, words);
        outbox.close();
        for (Outbox.Sent frame = outbox.next(); frame != null; frame = outbox.next()) {
            assertTrue(frame.frame.length < 1 << 20, frame.frame.length + " bytes");
            outbox.sent();
        }
        assertEquals(1_501, totals.callsSent());
    }

    /** The open call keeps its duration, and the next call has the new time. */
    @ParameterizedTest
    @CsvSource({"3600", "-3600"})
    void aClockChangeDoesNotMoveOpenCalls(long seconds) {
        Buffers buffers = new Buffers(session, new Buffers.Options());
        ThreadBuffer buffer = buffers.current();
        int operation = Operations.shared().id(Operations.METHOD, "m");
        int open = buffer.enter(operation);
        drain(buffers);
        set = Duration.ofSeconds(seconds);
        clock.update();
        buffer.exit(open);
        buffer.exit(buffer.enter(operation));
        drain(buffers);
        assertEquals(2, decoder.roots.size());
        Call before = decoder.roots.get(0);
        Call after = decoder.roots.get(1);
        long minute = Duration.ofMinutes(1).toNanos();
        assertTrue(before.end - before.start < minute, "the duration of the open call jumped");
        long moved = after.start - before.end - Duration.ofSeconds(seconds).toNanos();
        assertTrue(Math.abs(moved) < minute, "the next call does not follow the clock");
    }
}
