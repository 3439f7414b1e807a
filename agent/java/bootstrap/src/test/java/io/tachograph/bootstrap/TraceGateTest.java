package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** For unrecorded traces, the ring gets no event, and the counts include all calls. */
class TraceGateTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final Context KEPT = header("01");
    private static final Context UNSAMPLED = header("00");

    private static Context header(String flags) {
        return Context.parse("00-" + TRACE + "-00f067aa0ba902b7-" + flags);
    }

    private static Buffers buffers(long tracesMax) {
        Buffers.Options options = new Buffers.Options();
        options.tracesMax = tracesMax;
        return new Buffers(new Session(1, 2), options);
    }

    private static int operation(String name) {
        return Operations.shared().id(Operations.METHOD, name);
    }

    /** Returns true if the call was recorded. */
    private static boolean call(ThreadBuffer buffer, String name, Context cause) {
        long before = buffer.published();
        Context attached = buffer.attach(cause);
        int token = buffer.enter(operation(name));
        buffer.attach(attached);
        boolean isKept = token > 0;
        assertEquals(isKept, buffer.published() > before);
        buffer.exit(token);
        return isKept;
    }

    /**
     * The counts of traces: begun here and recorded, begun here and not recorded, begun in another
     * process that records them, begun in another process that does not record them.
     */
    private static String counts(Buffers buffers, String name) {
        int index = buffers.traces().entry(operation(name)).index();
        long[] sums = new long[4];
        buffers.forEach(
                buffer -> {
                    sums[0] += buffer.gate().kept(index);
                    sums[1] += buffer.gate().unsampled(index);
                    sums[2] += buffer.gate().followsKept(index);
                    sums[3] += buffer.gate().followsUnsampled(index);
                });
        return Arrays.toString(sums);
    }

    private static long callsUnsampled(Buffers buffers) {
        long[] sum = new long[1];
        buffers.forEach(buffer -> sum[0] += buffer.gate().callsUnsampled());
        return sum[0];
    }

    /**
     * Runs a script. {@code A(} begins a recorded call, {@code a(} a counted call. The innermost
     * call returns at {@code )} and throws at {@code !}. At {@code .} its exit is lost, as after a
     * stack overflow.
     */
    private static void play(ThreadBuffer buffer, String script) {
        Deque<Character> names = new ArrayDeque<>();
        Deque<Integer> tokens = new ArrayDeque<>();
        for (char c : script.replace("(", "").toCharArray()) {
            if (Character.isLetter(c)) {
                int operation = operation(String.valueOf(c));
                names.push(c);
                boolean isCounted = Character.isLowerCase(c);
                tokens.push(isCounted ? buffer.enterCounted(operation) : buffer.enter(operation));
                continue;
            }
            boolean isCounted = Character.isLowerCase(names.pop());
            int token = tokens.pop();
            if (c != '.' && isCounted) {
                buffer.exitCounted(token, c == '!');
            } else if (c == ')') {
                buffer.exit(token);
            } else if (c == '!') {
                buffer.exitFailed(token, new IllegalStateException("x"));
            }
        }
    }

    private static Map<String, Long> counted(Buffers buffers) {
        Map<String, Long> counted = new TreeMap<>();
        buffers.forEach(
                buffer -> {
                    for (Tally tally : buffer.tallies().all()) {
                        Operations.Entry caller = Operations.shared().entry(tally.caller());
                        String name = Operations.shared().entry(tally.operation()).name;
                        long calls = 0;
                        for (int at = 0; at < Tally.buckets(); at++) {
                            calls += tally.bucket(at);
                        }
                        counted.merge(
                                (caller == null ? "-" : caller.name) + ">" + name,
                                calls,
                                Long::sum);
                    }
                });
        return counted;
    }

    /**
     * An unsampled trace writes no event. Its counted calls have the same counts as in a recorded
     * trace.
     */
    @ParameterizedTest
    @CsvSource({
        "A(), 1",
        "A(B(C())), 3",
        "A(B(C())B!!, 4",
        "A(b()), 1",
        "A(b()B(c())b()), 2",
        "a(B(c())c()), 1",
        "a(B(C(d())d())), 2",
        "A(b(c.)), 1",
        "A(b(C(d.)e())), 2",
        "A(B(C.)D()), 4",
        "A(b.C.)d()A(e()), 3",
        "a(A(b.)c())d(), 1",
    })
    void noCallOfAnUnsampledTraceIsRecorded(String script, long calls) {
        Buffers keeping = buffers(1);
        Buffers leaving = buffers(1);
        keeping.current().attach(KEPT);
        leaving.current().attach(UNSAMPLED);
        play(keeping.current(), script);
        ThreadBuffer buffer = leaving.current();
        play(buffer, script);
        assertEquals(0, buffer.published());
        assertEquals(calls, callsUnsampled(leaving));
        assertEquals(0, callsUnsampled(keeping));
        assertEquals(0, buffer.callsDropped());
        assertEquals(counted(keeping), counted(leaving));
        assertTrue(call(buffer, "after", KEPT), "a later sampled trace is not recorded");
        assertFalse(call(buffer, "after", UNSAMPLED));
        assertEquals("[0, 0, 1, 1]", counts(leaving, "after"));
    }

    @Test
    void exitsOfConstructorsEndTheirOwnCall() {
        Buffers buffers = buffers(1);
        ThreadBuffer buffer = buffers.current();
        buffer.attach(UNSAMPLED);
        int outer = buffer.enter(operation("<init>"));
        int inner = buffer.enter(operation("<init> inner"));
        assertEquals(inner, buffer.innermost(operation("<init> inner")));
        buffer.exit(inner);
        assertEquals(outer, buffer.innermost(operation("<init>")));
        buffer.exit(outer);
        assertTrue(call(buffer, "after", KEPT));
    }

    @Test
    void callsOnOtherThreadsFollowAnUnrecordedTrace() {
        Buffers buffers = buffers(1);
        ThreadBuffer buffer = buffers.current();
        buffers.traces().spare(0);
        assertTrue(call(buffer, "entry", null), "the first trace is not recorded");
        int token = buffer.enter(operation("entry"));
        assertTrue(token < 0);
        Context context = buffer.context();
        assertSame(context, buffer.context(), "the context must stay the same within a trace");
        assertTrue(context.traceparent().endsWith("-00"));
        // A call on another thread in the context of the trace is not counted as a trace.
        ThreadBuffer other = buffers.lend(Thread.currentThread());
        assertFalse(call(other, "task", context));
        other.attach(context);
        assertFalse(call(other, "task", context));
        assertSame(context, other.context());
        buffers.takeBack(other);
        HandedCall handed =
                HandedCall.begin(buffers, operation("request"), context, "key", "value");
        assertSame(context, handed.context());
        handed.end(0, false, null);
        assertNull(buffers.takeEnded());
        assertEquals("[0, 0, 0, 0]", counts(buffers, "task"));
        assertEquals("[0, 0, 0, 0]", counts(buffers, "request"));
        assertEquals("[1, 1, 0, 0]", counts(buffers, "entry"));
        assertEquals(4, callsUnsampled(buffers));
        buffer.exit(token);
        assertNull(buffer.context(), "the trace has ended, but its context is still there");
        token = buffer.enter(operation("entry"));
        assertNotEquals(context.traceparent(), buffer.context().traceparent());
        buffer.exit(token);
    }

    @Test
    void aTraceOfAnotherProcessKeepsItsId() {
        Buffers buffers = buffers(1_000);
        ThreadBuffer buffer = buffers.current();
        Context attached = buffer.attach(UNSAMPLED);
        int token = buffer.enter(operation("request"));
        buffer.attach(attached);
        assertEquals("00-" + TRACE + "-00f067aa0ba902b7-00", buffer.context().traceparent());
        assertFalse(buffer.context().isFromHeader(),
                "a task of the trace would be counted as a trace");
        buffer.exit(token);
        buffer.attach(KEPT);
        token = buffer.enter(operation("request"));
        String sent = buffer.context().traceparent();
        assertTrue(sent.startsWith("00-" + TRACE) && sent.endsWith("-01"), sent);
        buffer.exit(token);
        assertEquals("[0, 0, 1, 1]", counts(buffers, "request"));
    }

    /** By default every trace is recorded, even if its header has no sampled flag. */
    @ParameterizedTest
    @ValueSource(strings = {"00", "01"})
    void withoutTheSettingAllTracesAreRecorded(String flags) {
        Buffers buffers = buffers(0);
        ThreadBuffer buffer = buffers.current();
        assertNull(buffers.traces());
        assertNull(buffer.gate());
        buffer.attach(header(flags));
        int token = buffer.enter(operation("request"));
        assertTrue(token > 0);
        assertTrue(buffer.context().traceparent().endsWith("-01"));
        buffer.exit(token);
    }

    @Test
    void aShareHasPermitsAndAProbability() {
        Buffers buffers = buffers(3);
        ThreadBuffer buffer = buffers.current();
        for (int at = 0; at < 6; at++) {
            // The first trace uses the permit of its entry; the next three use spare permits.
            assertEquals(at < 4, call(buffer, "entry", null), "trace " + at);
        }
        TraceEntry entry = buffers.traces().entry(operation("entry"));
        entry.give(1, 2);
        assertTrue(call(buffer, "entry", null) && call(buffer, "entry", null));
        assertFalse(call(buffer, "entry", null));
        entry.give(0, 1_000_000);
        assertFalse(call(buffer, "entry", null), "recorded, although the probability is 0");
        entry.give(0.25, 0);
        int kept = 0;
        for (int at = 0; at < 10_000; at++) {
            kept += call(buffer, "entry", null) ? 1 : 0;
            buffer.free(buffer.published());
        }
        assertTrue(kept > 2_200 && kept < 2_800, "kept " + kept);
        buffers.traces().spare(1);
        entry.give(1, -entry.permits());
        assertTrue(call(buffer, "entry", null));
        assertFalse(call(buffer, "entry", null));
    }

    @Test
    void entryOperationsAreBounded() {
        Traces traces = buffers(1).traces();
        for (int at = 1; at <= Traces.ENTRIES_MAX; at++) {
            assertEquals(at, traces.entry(operation("bounded-" + at)).index());
        }
        TraceEntry others = traces.entry(operation("bounded-more"));
        assertEquals(0, others.index());
        assertEquals(Operations.OTHER, Operations.shared().entry(others.operation()).name);
        assertSame(others, traces.entry(operation("bounded-yet-more")));
        assertSame(others, traces.entry(Operations.COUNT_MAX));
        assertEquals(1, traces.entry(operation("bounded-1")).index(),
                "a known operation must keep its own entry");
        assertEquals(Traces.ENTRIES_MAX + 1, traces.entries().length);
    }

    /** Buffers with rings of 64 words. */
    private static Buffers shortRings(int tracesMax) {
        Buffers.Options options = new Buffers.Options();
        options.words = 64;
        options.tracesMax = tracesMax;
        return new Buffers(new Session(1, 2), options);
    }

    @Test
    void theGateIgnoresACallThatDoesNotFit() {
        Buffers buffers = shortRings(1_000);
        ThreadBuffer buffer = buffers.current();
        int kept = 0;
        for (int at = 0; at < 100; at++) {
            kept += call(buffer, "entry", null) ? 1 : 0;
        }
        assertTrue(kept < 40 && buffer.callsDropped() == 100 - kept, "kept " + kept);
        assertEquals("[" + kept + ", 0, 0, 0]", counts(buffers, "entry"));
        assertEquals(0, callsUnsampled(buffers));
    }

    @Test
    void aThreadThatEndsInsideACallLeavesACleanBuffer() throws Exception {
        Buffers buffers = buffers(1);
        ThreadBuffer[] left = new ThreadBuffer[1];
        Thread thread =
                new Thread(
                        () -> {
                            left[0] = buffers.current();
                            left[0].attach(UNSAMPLED);
                            left[0].enter(operation("A"));
                            left[0].enter(operation("B"));
                        });
        thread.start();
        thread.join();
        assertTrue(buffers.reclaim(left[0]));
        left[0].own(Thread.currentThread(), false);
        assertNull(left[0].context());
        assertTrue(call(left[0], "after", KEPT));
        assertEquals(2, callsUnsampled(buffers));
    }

    @Test
    void everyTraceOfManyThreadsIsCounted() throws Exception {
        Buffers buffers = buffers(500);
        int traces = 20_000;
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < 8; at++) {
            Thread thread =
                    new Thread(
                            () -> {
                                ThreadBuffer buffer = buffers.current();
                                for (int trace = 0; trace < traces; trace++) {
                                    play(buffer, "A(B()B(c()))");
                                }
                            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long all = 8L * traces;
        assertEquals("[501, " + (all - 501) + ", 0, 0]", counts(buffers, "A"));
        assertEquals(3 * (all - 501), callsUnsampled(buffers));
        assertEquals(Map.of("B>c", all), counted(buffers));
    }

    /** A parent is an object, and a ring of 64 words has space for 16 objects. */
    @Test
    void theGateIgnoresACallWhoseParentDoesNotFit() {
        Buffers buffers = shortRings(1_000);
        ThreadBuffer buffer = buffers.current();
        for (int at = 0; at < 20; at++) {
            assertEquals(at < 16, call(buffer, "entry", KEPT), "trace " + at);
            buffer.free(buffer.published()); // frees the words, but not the objects
        }
        assertEquals("[0, 0, 16, 0]", counts(buffers, "entry"));
        assertEquals(4, buffer.callsDropped());
        assertEquals(0, callsUnsampled(buffers));
    }

    /**
     * The exit of an unrecorded call is lost. The call is unrecorded because its trace is unsampled
     * ({@code byGate}) or because the ring is full.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLostExitDoesNotSuppressItsThreadPermanently(boolean byGate) {
        Buffers buffers = shortRings(byGate ? 1_000 : 0);
        ThreadBuffer buffer = buffers.current();
        if (byGate) {
            buffer.attach(UNSAMPLED);
        } else {
            while (call(buffer, "full", null)) {}
        }
        int before = buffer.outermostUnrecorded();
        assertEquals(0, before, "an unrecorded call is open at the start");
        assertTrue(buffer.enter(operation("outer")) < 0);
        buffer.attach(null);
        buffer.free(buffer.published());
        int number = buffer.outermostUnrecorded();
        buffer.endUnrecorded(before);
        buffer.endUnrecorded(number - 1);
        assertFalse(call(buffer, "inner", null), "recorded, although its caller is not");
        int inner = buffer.enter(operation("inner"));
        buffer.endUnrecorded(number);
        assertTrue(call(buffer, "later", null), "not recorded, although it begins a trace");
        assertTrue(call(buffer, "later", null));
        assertEquals(!byGate, call(buffer, "between", UNSAMPLED),
                "the sampled flag must have an effect only if there is a gate");
        long dropped = buffer.callsDropped();
        buffer.exit(inner); // no effect: endUnrecorded gave up the caller
        assertTrue(call(buffer, "later", null));
        buffer.exit(-1);
        assertTrue(call(buffer, "later", null));
        assertEquals(dropped, buffer.callsDropped());
        assertEquals(0, buffer.outermostUnrecorded());
        assertNull(buffer.context());
        buffer.attach(UNSAMPLED);
        assertEquals(!byGate, call(buffer, "after", UNSAMPLED),
                "the sampled flag must have an effect only if there is a gate");
    }

    /**
     * Giving up the call would return the buffer, which could then belong to another thread at the
     * exit of the call.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallInABorrowedBufferIsNotGivenUp(boolean borrowed) {
        Buffers buffers = new Buffers(new Session(1, 2), new Buffers.Options());
        ThreadBuffer full = new ThreadBuffer(buffers, 0, 0, borrowed);
        assertTrue(full.enter(operation("outer")) < 0);
        assertEquals(borrowed, full.outermostUnrecorded() == 0);
    }
}
