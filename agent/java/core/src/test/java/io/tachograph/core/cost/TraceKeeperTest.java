package io.tachograph.core.cost;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.bootstrap.Buffers;
import io.tachograph.bootstrap.Caused;
import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Session;
import io.tachograph.bootstrap.ThreadBuffer;
import io.tachograph.bootstrap.TraceEntry;
import io.tachograph.core.instrument.Moves;
import io.tachograph.core.log.AgentLog;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The rate of recorded traces, second by second, with simulated time and load. */
class TraceKeeperTest {
    private static final String HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";

    /** A program that begins traces, and the keeper that limits them. */
    private static final class Load {
        final ByteArrayOutputStream said = new ByteArrayOutputStream();
        final AgentLog log = AgentLog.to(new PrintStream(said), false);
        final Moves moves = new Moves(log);
        final Random random = new Random(7);
        final Map<String, Long> kept = new TreeMap<>();
        final Map<String, Long> made = new TreeMap<>();
        final Buffers buffers;
        final TraceKeeper keeper;
        long keptInSecond;

        Load(long tracesMax) {
            Buffers.Options options = new Buffers.Options();
            options.tracesMax = tracesMax;
            buffers = new Buffers(new Session(1, 2), options);
            keeper = new TraceKeeper(buffers, moves, log);
        }

        /**
         * Makes a trace of one call. The part of the name after a slash is the flags of the
         * incoming {@code traceparent}.
         */
        private void trace(String name) {
            String[] parts = name.split("/");
            Context cause = parts.length == 1 ? null : Context.parse(HEADER + parts[1]);
            ThreadBuffer buffer = buffers.current();
            int operation = Operations.shared().id(Operations.METHOD, parts[0]);
            int token = Caused.enter(buffer, operation, cause);
            buffer.exit(token);
            buffer.free(buffer.published());
            if (token > 0 && cause != null) {
                buffer.takeObject(); // takes the parent, as the reader does
            }
            made.merge(parts[0], 1L, Long::sum);
            kept.merge(parts[0], token > 0 ? 1L : 0L, Long::sum);
            keptInSecond += token > 0 ? 1 : 0;
        }

        /**
         * Runs one second of a load such as {@code hot=50000 rare=1}, in random order.
         *
         * @return number of recorded traces
         */
        long second(String rates) {
            List<String> order = new ArrayList<>();
            for (String rate : rates.split(" ")) {
                String[] parts = rate.split("=");
                order.addAll(Collections.nCopies(Integer.parseInt(parts[1]), parts[0]));
            }
            Collections.shuffle(order, random);
            keptInSecond = 0;
            order.forEach(this::trace);
            keeper.step(1);
            return keptInSecond;
        }

        String told(String name) {
            TraceCounts counts = new TraceCounts(buffers);
            counts.read();
            TraceEntry[] entries = buffers.traces().entries();
            for (int at = 0; at < entries.length; at++) {
                if (Operations.shared().entry(entries[at].operation()).name.equals(name)) {
                    long kept = counts.allKept(at);
                    return kept + " of " + (kept + counts.allUnsampled(at));
                }
            }
            return "unknown";
        }
    }

    private static double[] numbers(String text) {
        return Arrays.stream(text.split(" ")).mapToDouble(Double::parseDouble).toArray();
    }

    @ParameterizedTest
    @CsvSource({
        "100, 10 20 30, 10 20 30",
        "100, 1000, 100",
        "100, 1000 1000, 50 50",
        "100, 1 1000 1, 1 98 1",
        "100, 5 1000 45 1000, 5 31.667 31.667 31.667",
        "2, 1 1 1 1 1 1 1 1, .25 .25 .25 .25 .25 .25 .25 .25",
        "1, 5 5 0 5 5, .25 .25 0 .25 .25",
        "0, 5 5, 0 0",
        "-3, 5, 0",
    })
    void sharesAreFair(double budget, String wanted, String expected) {
        assertArrayEquals(numbers(expected), TraceShares.of(budget, numbers(wanted)), 0.001);
    }

    /**
     * Columns: the limit, the load of a second, the minimum number of recorded traces of each
     * operation in 20 s, the maximum number of recorded traces per second.
     */
    @ParameterizedTest
    @CsvSource({
        // Not above the limit: everything is recorded from the first second on.
        "100, a=60 b=30 c=1, a=1200 b=600 c=20, 91",
        "100, a=100, a=2000, 100",
        // One or two operations are hot. Other operations lose traces at most in the first second.
        "100, hot=20000 rare=1, hot=1700 rare=20, 100",
        "100, hot=20000 some=30 rare=1, hot=1100 some=571 rare=20, 100",
        "1000, hot=50000 hotter=90000 rare=2, hot=8500 hotter=8500 rare=39, 1000",
        // There are more operations than permitted traces per second. Each gets an equal share.
        "3, a=50 b=50 c=50 d=50 e=50 f=50, a=8 b=8 c=8 d=8 e=8 f=8, 3",
        // One operation has the whole limit.
        "1, hot=3000, hot=14, 1",
    })
    void theRateIsLimitedAndRareTracesAreRecorded(
            long max, String rates, String least, long ofSecond) {
        Load load = new Load(max);
        long seconds = 20;
        long all = 0;
        for (int second = 0; second < seconds; second++) {
            long kept = load.second(rates);
            // Each operation may have one more permit: an initial or a saved permit.
            assertTrue(kept <= ofSecond + rates.split(" ").length, kept + " kept");
            all += kept;
        }
        assertTrue(all <= seconds * ofSecond + rates.split(" ").length, all + " kept");
        for (String part : least.split(" ")) {
            String name = part.substring(0, part.indexOf('='));
            long enough = Long.parseLong(part.substring(part.indexOf('=') + 1));
            assertTrue(load.kept.get(name) >= enough, load.kept + " kept, expected at least " + least);
            assertEquals(load.kept.get(name) + " of " + load.made.get(name), load.told(name));
        }
    }

    /** The keeper computes shares from the previous second, in which the load was low. */
    @Test
    void aBurstIsLimitedInItsFirstSecond() {
        Load load = new Load(100);
        for (int second = 0; second < 5; second++) {
            assertEquals(21, load.second("a=20 b=1"));
        }
        long rush = load.second("a=30000 b=1 c=1");
        assertTrue(rush <= 101 && rush >= 90, rush + " kept in the burst");
        assertEquals(6, load.kept.get("b"), "each trace of b must be recorded");
        assertEquals(1, load.kept.get("c"), "the first trace of c must be recorded");
        long after = load.second("a=30000 b=1 c=1");
        assertTrue(after <= 101 && after >= 80, after + " kept after the burst");
    }

    @Test
    void rareTracesAreRecorded() {
        Load load = new Load(50);
        for (int second = 0; second < 60; second++) {
            load.second(second % 10 == 9 ? "hot=5000 rare=1" : "hot=5000");
        }
        assertEquals(6, load.kept.get("rare"));
    }

    @ParameterizedTest
    @CsvSource({
        "from/01=300 own=50, 300 of 300, 50 of 50",
        "from/00=300 own=50, 0 of 300, 50 of 50",
    })
    void decisionsOfOtherProcessesAreFollowed(String rates, String from, String own) {
        Load load = new Load(1_000);
        load.second(rates);
        assertEquals(own, load.told("own"));
        assertEquals(from, load.told("from"));
    }

    /** Traces that begin in this process get the rest, but at least a tenth of the limit. */
    @Test
    void tracesOfOtherProcessesComeFirst() {
        Load load = new Load(100);
        load.second("from/01=80 own=5000");
        long before = load.kept.get("own");
        for (int second = 0; second < 10; second++) {
            load.second("from/01=80 own=5000");
        }
        long kept = load.kept.get("own") - before;
        assertTrue(kept > 150 && kept <= 210, kept + " traces of own were recorded in 10 s");
        load.second("from/01=5000 own=5000");
        before = load.kept.get("own");
        for (int second = 0; second < 10; second++) {
            load.second("from/01=5000 own=5000");
        }
        kept = load.kept.get("own") - before;
        assertTrue(kept > 75 && kept <= 110, kept + " traces of own were recorded in 10 s");
        assertEquals(load.made.get("from"), load.kept.get("from"));
    }

    @Test
    void unrecordedTracesAreLoggedOnce() {
        Load load = new Load(10);
        load.second("a=100 b=1");
        assertEquals("", load.said.toString(), "a burst was logged");
        load.second("a=0 b=1");
        load.second("a=1000 b=1");
        load.second("a=1001 b=1");
        load.second("a=3000 b=1");
        assertEquals(
                List.of("some traces are not recorded from now on: rate 1 k/s over 10/s"),
                said(load));
        assertEquals(0, load.moves.size(), "operations were moved");
        int seconds = 0;
        while (said(load).size() == 1 && seconds < 100) {
            load.second("a=1 b=1");
            seconds++;
        }
        // Shares come from the previous second, so the first quiet second may still have an
        // unrecorded trace.
        assertTrue(seconds == 30 || seconds == 31, "the end was logged after " + seconds + " s");
        assertEquals("all traces are recorded again", said(load).get(1));
    }

    private static List<String> said(Load load) {
        return load.said
                .toString()
                .lines()
                .map(line -> line.substring(line.indexOf("tachograph: ") + "tachograph: ".length()))
                .collect(Collectors.toList());
    }
}
