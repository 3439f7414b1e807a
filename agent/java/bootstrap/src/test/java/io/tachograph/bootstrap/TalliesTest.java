package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Counted calls, alone and between recorded calls. */
class TalliesTest {
    private static Buffers buffers() {
        return new Buffers(new Session(1, 2), new Buffers.Options());
    }

    private static int operation(String name) {
        return Operations.shared().id(Operations.METHOD, name);
    }

    private static String name(int operation) {
        return operation == 0 ? "-" : Operations.shared().entry(operation).name;
    }

    private static long calls(Tally tally) {
        long calls = 0;
        for (int at = 0; at < Tally.buckets(); at++) {
            calls += tally.bucket(at);
        }
        return calls;
    }

    private static Map<String, Long> counted(Buffers buffers) {
        Map<String, Long> counted = new TreeMap<>();
        buffers.forEach(
                buffer -> {
                    for (Tally tally : buffer.tallies().all()) {
                        String pair = name(tally.caller()) + ">" + name(tally.operation());
                        counted.merge(pair, calls(tally), Long::sum);
                    }
                });
        return counted;
    }

    /**
     * Runs a script. {@code a(} begins a counted call, {@code A(} a recorded call. {@code )} ends
     * the innermost call. At {@code .} the exit of the innermost call is lost, as after a stack
     * overflow.
     */
    private static void play(ThreadBuffer buffer, String script) {
        Deque<String> names = new ArrayDeque<>();
        Deque<Integer> tokens = new ArrayDeque<>();
        for (char c : script.replace("(", "").toCharArray()) {
            if (c == '.' || c == ')') {
                boolean recorded = Character.isUpperCase(names.pop().charAt(0));
                int token = tokens.pop();
                if (c == ')' && recorded) {
                    buffer.exit(token);
                } else if (c == ')') {
                    buffer.exitCounted(token, false);
                }
            } else {
                String name = String.valueOf(c);
                names.push(name);
                int operation = operation(name);
                tokens.push(
                        Character.isUpperCase(c)
                                ? buffer.enter(operation)
                                : buffer.enterCounted(operation));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "a(), {->a=1}",
        "a()a()a(), {->a=3}",
        "a(b()b()), '{->a=1, a>b=2}'",
        "a(a(a())), '{->a=1, a>a=2}'",
        "A(b()), {A>b=1}",
        "A(b()B(c())b()), '{A>b=2, B>c=1}'",
        "a(B(c())c()), '{->a=1, B>c=1, a>c=1}'",
        "a(B(C(d())d())), '{->a=1, B>d=1, C>d=1}'",
        "A(b(c.), '{A>b=1}'",
        "A(b(c.)d()), '{A>b=1, A>d=1}'",
        "a(b.)c(), '{->a=1, ->c=1}'",
        "A(b.)c(), '{->c=1}'",
        "A(b.C.)d()A(e()), '{->d=1, A>e=1}'",
    })
    void everyCallHasItsCaller(String script, String expected) {
        Buffers buffers = buffers();
        play(buffers.current(), script);
        Map<String, Long> counted = counted(buffers);
        counted.values().removeIf(calls -> calls == 0);
        assertEquals(expected, counted.toString());
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0.000000064",
        "-5, 0.000000064",
        "64, 0.000000064",
        "65, 0.000000128",
        "16384, 0.000016384",
        "16385, 0.000065536",
        "65536, 0.000065536",
        "1073741824, 1.073741824",
        "1073741825, inf",
        "9223372036854775807, inf",
    })
    void durationsFallIntoBuckets(long nanos, String bound) {
        Tally tally = new Tally(1, 0);
        tally.add(nanos, false);
        for (int at = 0; at < Tally.buckets(); at++) {
            boolean last = at == Tally.buckets() - 1;
            String here = last ? "inf" : String.format("%.9f", Tally.boundNanos(at) / 1e9);
            assertEquals(here.equals(bound) ? 1 : 0, tally.bucket(at), here);
        }
        assertEquals(nanos, tally.sumNanos());
    }

    @Test
    void theLongestCallIsReportedForItsInterval() {
        Tally tally = new Tally(1, 0);
        Tally.nextInterval();
        tally.add(100, true);
        tally.add(300, false);
        tally.add(200, true);
        int first = Tally.nextInterval();
        tally.add(50, false);
        assertEquals(300, tally.longestNanos(first));
        int second = Tally.nextInterval();
        assertEquals(50, tally.longestNanos(second));
        assertEquals(0, tally.longestNanos(Tally.nextInterval()));
        assertEquals(2, tally.failed());
        tally.add(Long.MAX_VALUE, false);
        assertEquals((1L << 42) - 1, tally.longestNanos(Tally.nextInterval()));
    }

    @Test
    void exitsOfConstructorsEndTheirOwnCall() {
        ThreadBuffer buffer = buffers().current();
        int outer = buffer.enterCounted(operation("<init>"));
        buffer.enterCounted(operation("other"));
        assertEquals(outer, buffer.innermostCounted(operation("<init>")));
        assertEquals(0, buffer.innermostCounted(operation("never")));
        buffer.exitCounted(0, false);
        assertTrue(buffer.tallies().isOpen(), "the token 0 has ended a call");
        buffer.exitCounted(outer, false);
        assertFalse(buffer.tallies().isOpen());
    }

    @Test
    void pairsAreBounded() {
        CallPairs pairs = new CallPairs(Operations.shared());
        long other = Operations.shared().other(Operations.METHOD);
        for (int caller = 1_001; caller <= 1_000 + CallPairs.OWN_MAX; caller++) {
            long pair = 7L << 32 | caller;
            assertEquals(pair, pairs.admit(pair));
        }
        assertEquals(7L << 32 | other, pairs.admit(7L << 32 | 9_999));
        assertEquals(7L << 32 | 1_001, pairs.admit(7L << 32 | 1_001),
                "a known pair must keep its own count");
        long operation = 100;
        for (int left = CallPairs.PAIRS_MAX - CallPairs.OWN_MAX - 1; left > 0; left--) {
            assertEquals(operation << 32 | other, pairs.admit(operation << 32 | 1_001));
            operation++;
        }
        assertEquals(CallPairs.REST, pairs.admit(operation << 32 | 1_001));
        assertEquals(7L << 32 | other, pairs.admit(7L << 32 | 8_888));
    }

    @Test
    void callsPastTheBoundAreCounted() {
        Buffers buffers = buffers();
        ThreadBuffer buffer = buffers.current();
        int calls = 6_000;
        for (int round = 0; round < 2; round++) {
            for (int at = 0; at < calls; at++) {
                buffer.exitCounted(buffer.enterCounted(operation("bound-" + at)), false);
            }
        }
        long sum = counted(buffers).values().stream().mapToLong(Long::longValue).sum();
        assertEquals(2 * calls, sum);
        assertTrue(buffer.tallies().all().length <= CallPairs.PAIRS_MAX + 1);
    }

    @Test
    void readingTheCountsLosesNoCallOfManyThreads() throws Exception {
        Buffers buffers = buffers();
        List<Thread> threads = new ArrayList<>();
        int calls = 50_000;
        for (int at = 0; at < 8; at++) {
            Random random = new Random(at);
            Thread thread =
                    new Thread(
                            () -> {
                                ThreadBuffer buffer = buffers.current();
                                for (int call = 0; call < calls; call++) {
                                    int outer = buffer.enterCounted(operation("outer"));
                                    int inner = buffer.enterCounted(operation("inner"));
                                    buffer.exitCounted(inner, random.nextBoolean());
                                    buffer.exitCounted(outer, false);
                                }
                            });
            thread.start();
            threads.add(thread);
        }
        long before = 0;
        for (int look = 0; look < 100; look++) {
            long now = counted(buffers).getOrDefault("->outer", 0L);
            assertTrue(now >= before, "the count of outer fell from " + before + " to " + now);
            before = now;
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(Map.of("->outer", 8L * calls, "outer>inner", 8L * calls), counted(buffers));
    }

    @Test
    void callsOfAThreadWithoutABufferAreCountedAsDropped() {
        Buffers.Options options = new Buffers.Options();
        Buffers buffers = new Buffers(new Session(1, 2), options);
        ThreadBuffer none = new ThreadBuffer(buffers, ThreadBuffer.UNASSIGNED, 0, true);
        int outer = none.enterCounted(operation("a"));
        int inner = none.enterCounted(operation("b"));
        assertTrue(outer < 0 && inner < 0);
        none.exitCounted(inner, false);
        assertEquals(outer, none.innermostCounted(operation("a")));
        none.exitCounted(outer, true);
        assertEquals(2, buffers.callsDroppedWithoutBuffer());
        assertEquals(0, none.tallies().all().length);
    }
}
