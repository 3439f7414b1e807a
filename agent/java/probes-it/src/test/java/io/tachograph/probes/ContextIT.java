package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.BusyShop;
import shop.ReusedTask;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Work that a call submits to other threads belongs to the trace of the call. */
class ContextIT {
    private static final String WORK = "shop.BusyShop.work(String)";

    /**
     * The methods that run the scenarios are not recorded, so work that they submit directly has no
     * origin.
     */
    private static final String SCENARIOS =
            Stream.of(
                            "main", "<init>", "hold", "finish", "finished", "order", "leaving",
                            "full", "again", "all", "refusals", "handlers", "others", "repeat")
                    .map(method -> "shop.ReusedTask." + method)
                    .collect(Collectors.joining(","));

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void workInOtherThreadsBelongsToItsCall(int jdk) throws Exception {
        try (Watched shop = new Watched(jdk, BusyShop.class)) {
            shop.end();
            Map<String, Integer> expected = new LinkedHashMap<>();
            expected.put("execute", 1);
            expected.put("submit", 1);
            expected.put("sharedFirst", 2);
            expected.put("sharedSecond", 1);
            expected.put("schedule", 1);
            expected.put("periodic", 1);
            expected.put("future", 2);
            expected.put("futureOn", 1);
            expected.put("forkJoin", 1);
            expected.put("thread", 1);
            expected.put("alone", 1);
            expected.put("ordered", 3);
            expected.put("removed", 0);
            if (jdk >= 21) {
                expected.put("virtual", 1);
                expected.put("virtualEach", 3);
            }
            Map<String, Integer> found = new LinkedHashMap<>();
            expected.keySet().forEach(method -> found.put(method, workOf(shop, method)));
            assertEquals(expected, found, () -> shop.shapes().toString());
            // The second and the third run of the periodic task have no parent.
            long orphans =
                    shop.roots().stream()
                            .filter(root -> root.operation.equals(WORK) && root.parent == null)
                            .count();
            assertEquals(2, orphans, () -> shop.shapes().toString());
        }
    }

    /**
     * Recorded calls and unrecorded code submit the same object. If the agent cannot determine
     * which submission a run belongs to, the run has no parent.
     */
    @ParameterizedTest
    @MethodSource("jdks")
    void noRunOfATaskBelongsToAnotherSubmission(int jdk) throws Exception {
        Map<String, String> settings =
                Map.of("TACHO_INCLUDE", "shop.ReusedTask", "TACHO_EXCLUDE", SCENARIOS);
        try (Watched shop = new Watched(jdk, settings, ReusedTask.class)) {
            shop.end();
            Map<String, String> expected = new LinkedHashMap<>();
            expected.put("untracedFirst", "[-, a]");
            expected.put("taken", "[a, a, -, b, -, -, a]");
            expected.put("twoPools", "[b, a]");
            expected.put("newThread", "[b, a]");
            expected.put("withoutOrder", "[-, -, b]");
            expected.put("removed", "[-, b]");
            expected.put("drained", "[-, b]");
            expected.put("takenUnseen", "[-, b]");
            expected.put("aborted", "[-, b]");
            // The pool runs the task of a() on the thread of a(), as a child of a(), not as a root.
            expected.put("ranByCaller", "[-, b]");
            expected.put("discarded", "[-, b]");
            expected.put("oldestDiscarded", "[b]");
            expected.put("putByHandler", "[a]");
            expected.put("lostByHandler", "[-]");
            expected.put("scheduled", "[a, -]");
            expected.put("periodic", "[a, -, -]");
            expected.put("forked", "[-, a]");
            expected.put("common", "[-, a]");
            expected.put("future", "[-, a]");
            expected.put("started", "[-, thread]");
            if (jdk >= 21) {
                expected.put("virtual", "[-, a]");
            }
            Map<String, String> found = new LinkedHashMap<>();
            for (String method : expected.keySet()) {
                found.put(method, origins(shop, method).toString());
            }
            assertEquals(expected, found, () -> shop.shapes().toString());
            Map<String, Long> together =
                    origins(shop, "together").stream()
                            .collect(Collectors.groupingBy(each -> each, Collectors.counting()));
            assertEquals(Map.of("a", 200L, "b", 200L, "-", 200L), together);
        }
    }

    /**
     * The origin of each run of {@code method} on another thread, in the order in which the runs
     * began: the submitting method, or {@code -} if the run has no parent.
     */
    private static List<String> origins(Watched shop, String method) {
        List<Call> roots = shop.roots();
        return roots.stream()
                .filter(root -> root.operation.equals("shop.ReusedTask." + method + "()"))
                .sorted(Comparator.comparingLong(root -> root.start))
                .map(
                        run ->
                                roots.stream()
                                        .filter(root -> root.span.equals(run.parent))
                                        .filter(root -> root.traceId.equals(run.traceId))
                                        .map(root -> root.operation)
                                        .map(name -> name.replaceAll(".*\\.(\\w+)\\(.*\\).*", "$1"))
                                        .findFirst()
                                        .orElse(run.parent == null ? "-" : "unknown"))
                .collect(Collectors.toList());
    }

    /**
     * Number of pieces of work for the call of {@code method}: segments of other threads, and calls
     * on the thread of {@code method}. {@code alone} runs its work on that thread. {@code get} of a
     * fork-join task may do so too.
     */
    private static int workOf(Watched shop, String method) {
        List<Call> roots = shop.roots();
        Call origin =
                roots.stream()
                        .filter(root -> root.operation.startsWith("shop.BusyShop." + method + "("))
                        .findFirst()
                        .orElseThrow(
                                () ->
                                        new AssertionError(
                                                method + " is missing: " + shop.shapes()));
        Stream<Call> elsewhere =
                roots.stream()
                        .filter(
                                root ->
                                        origin.span.equals(root.parent)
                                                && origin.traceId.equals(root.traceId));
        Stream<Call> here = origin.children.stream().filter(call -> call.operation.equals(WORK));
        return (int) (elsewhere.count() + here.count());
    }
}
