package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.core.log.AgentLog;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Log lines about outages and dropped calls. */
class OutagesTest {
    private static final String GOES_ON = "; the program goes on, the agent keeps trying";

    private static final String FIVE =
            "3 calls, 1 samples and 1 entries were dropped in the meantime";

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final Totals totals = new Totals();
    private final Outages outages = new Outages(AgentLog.to(new PrintStream(said), false), totals);

    /**
     * @param event time in seconds and one word: {@code lost}, {@code fails} (an attempt to
     *     connect), {@code unknown}, {@code expired} (both: the server refuses the token), {@code
     *     connects}, {@code drops} (five records), {@code looks} (the check while connected) or
     *     {@code ends} (the end of the program)
     */
    private void happens(String event) {
        String[] words = event.trim().split(" ");
        // close to an overflow of the clock
        long now = Long.MAX_VALUE + Long.parseLong(words[0]) * 1_000_000_000L;
        switch (words[1]) {
            case "lost" -> outages.failed("s:1", "gone", true, false, now);
            case "fails" -> outages.failed("s:1", "refused", false, false, now);
            case "unknown", "expired" -> outages.failed("s:1", words[1], false, true, now);
            case "connects" -> outages.connected("s:1", now);
            case "looks" -> outages.catchUp("s:1", false, now);
            case "ends" -> outages.catchUp("s:1", true, now);
            default -> {
                totals.callsDroppedInQueue += 3;
                totals.entriesDropped++;
                totals.samplesDropped++;
                totals.entriesFailed += 7; // failed in code of the program
            }
        }
    }

    private static Stream<Arguments> histories() {
        String first = "connected to s:1";
        String lost = "lost the server s:1: gone";
        String again = "connected again to s:1 after 1 s; nothing was dropped in the meantime";
        String once =
                "connected to s:1 again; the connection failed once since the last message about"
                        + " it; ";
        return Stream.of(
                Arguments.of("0 connects", List.of(first)),
                Arguments.of("0 connects, 1 looks, 2 ends", List.of(first)),
                Arguments.of(
                        "0 fails, 1 unknown, 2 unknown, 3 expired, 4 fails, 5 expired, 6 connects",
                        List.of(
                                "cannot reach the server s:1: refused",
                                "cannot reach the server s:1: unknown",
                                "cannot reach the server s:1: expired",
                                "connected to s:1 after 6 s; nothing was dropped in the meantime")),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 3 lost, 4 drops, 5 connects, 60 looks",
                        List.of(first, lost, again)),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 3 lost, 4 drops, 5 connects, 61 looks,"
                                + " 62 looks, 63 lost, 64 connects, 120 looks, 121 looks",
                        List.of(
                                first,
                                lost,
                                again,
                                once + FIVE,
                                once + "nothing was dropped in the meantime")),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 3 lost, 4 connects, 5 lost, 6 drops,"
                                + " 7 connects, 8 ends, 9 ends",
                        List.of(first, lost, again, once.replace("once", "2 times") + FIVE)),
                Arguments.of(
                        "0 fails, 1 fails, 70 fails",
                        List.of("cannot reach the server s:1: refused")),
                Arguments.of(
                        "0 fails, 2 drops, 9 connects",
                        List.of(
                                "cannot reach the server s:1: refused",
                                first + " after 9 s; " + FIVE)),
                Arguments.of(
                        "0 drops, 0 connects, 1 lost, 2 drops, 3 drops, 3 fails, 4 connects",
                        List.of(
                                first,
                                lost,
                                "connected again to s:1 after 3 s; 6 calls, 2 samples and 2"
                                        + " entries were dropped in the meantime")),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 60 lost, 61 connects",
                        List.of(first, lost, again)),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 61 lost, 62 connects",
                        List.of(first, lost, again, lost, again)),
                Arguments.of(
                        "0 connects, 1 lost, 2 connects, 3 lost, 4 drops, 5 connects, 6 lost,"
                                + " 61 fails, 62 connects",
                        List.of(
                                first,
                                lost,
                                again,
                                "lost the server s:1: refused, 2 times since the last message about"
                                        + " it",
                                "connected again to s:1 after 56 s; " + FIVE)));
    }

    private static Stream<Arguments> dropsWhileConnected() {
        String first = "connected to s:1";
        String lost = "lost the server s:1: gone";
        return Stream.of(
                Arguments.of(
                        "0 connects, 1 drops, 2 looks, 3 looks, 4 drops, 61 looks, 62 looks,"
                                + " 63 looks, 64 drops, 65 ends, 66 ends",
                        List.of(first, dropped(3), dropped(6), dropped(9))),
                Arguments.of(
                        "0 connects, 1 drops, 2 looks, 3 lost, 4 drops, 5 connects, 70 looks,"
                                + " 71 ends",
                        List.of(
                                first,
                                dropped(3),
                                lost,
                                "connected again to s:1 after 2 s; " + FIVE)),
                Arguments.of(
                        "0 fails, 1 drops, 2 ends",
                        List.of("cannot reach the server s:1: refused", dropped(3))));
    }

    private static String dropped(int calls) {
        return calls
                + " calls were dropped so far, usually because a buffer was full: record fewer"
                + " methods (include, exclude), or raise buffer or queue, or set when_full=block";
    }

    @ParameterizedTest
    @MethodSource({"histories", "dropsWhileConnected"})
    void furtherOutagesAndDropsOfAMinuteAreSummedUp(String events, List<String> expected) {
        for (String event : events.split(",")) {
            happens(event);
        }
        List<String> lines =
                said.toString()
                        .lines()
                        .map(line -> line.replaceFirst("^.* tachograph: ", "").replace(GOES_ON, ""))
                        .collect(Collectors.toList());
        assertEquals(expected, lines);
    }
}
