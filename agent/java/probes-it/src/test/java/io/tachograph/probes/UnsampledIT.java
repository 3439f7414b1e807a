package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.JettyShop;
import shop.RelayShop;
import shop.later.AsyncShop;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * A program with a limit of traces ({@code traces_max}) does not record a trace that the calling
 * program has decided not to record.
 */
class UnsampledIT {
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final String SPAN = "b7ad6b7169203331";
    private static final Map<String, String> LIMITED = Map.of("TACHO_TRACES_MAX", "1000000");
    private static final Set<String> WAYS = Set.of("send", "async", "task", "url", "thread");

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    private static void get(Watched shop, String path, String flags) throws Exception {
        shop.get(path, "traceparent", "00-" + TRACE + "-" + SPAN + "-" + flags);
    }

    private static String path(Call call) {
        return call.attributes.getOrDefault("http.path", "");
    }

    /** The paths of the recorded incoming requests, if they begin with the prefix. */
    private static Set<String> requests(Watched shop, String prefix) {
        return shop.roots().stream()
                .filter(root -> root.kind == 2)
                .map(UnsampledIT::path)
                .filter(path -> path.startsWith(prefix))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void aTraceIsRecordedByAllProgramsOrNone(int jdk) throws Exception {
        try (Watched last = new Watched(jdk, LIMITED, JettyShop.class)) {
            String address = "http://127.0.0.1:" + last.port();
            try (Watched first = new Watched(jdk, LIMITED, RelayShop.class, address)) {
                get(first, "/out", "00");
                get(first, "/kept", "01");
                get(first, "/out", "02");
                first.get("/own");
                for (String name : List.of("kept", "own")) {
                    for (String way : WAYS) {
                        last.root(root -> path(root).equals("/" + name + "/" + way));
                    }
                    first.root("GET /" + name);
                }
                Map<String, Set<String>> found = new TreeMap<>();
                Map<String, Set<String>> expected = new TreeMap<>();
                for (String name : List.of("out", "kept", "own")) {
                    boolean isKept = !name.equals("out");
                    String path = "/" + name;
                    expected.put(name, isKept ? Set.of(path) : Set.of());
                    found.put(name, requests(first, path));
                    String below = path + "/";
                    expected.put(
                            below,
                            isKept
                                    ? WAYS.stream().map(below::concat).collect(Collectors.toSet())
                                    : Set.of());
                    found.put(below, requests(last, below));
                }
                assertEquals(expected, found);
                Set<String> traces =
                        last.roots().stream()
                                .filter(root -> path(root).startsWith("/kept"))
                                .map(root -> root.traceId)
                                .collect(Collectors.toSet());
                assertEquals(Set.of(TRACE), traces);
                assertEquals(
                        1,
                        last.roots().stream()
                                .filter(root -> path(root).startsWith("/own"))
                                .map(root -> root.traceId)
                                .distinct()
                                .count());
            }
        }
    }

    /** Work that other threads do for an unrecorded request does not begin a trace. */
    @ParameterizedTest
    @MethodSource("jdks")
    void requestsAnsweredLaterAreUnrecordedAsAWhole(int jdk) throws Exception {
        List<String> ways =
                List.of("complete", "dispatch", "twice", "at-once", "dispatched-at-once");
        try (Watched shop = new Watched(jdk, LIMITED, AsyncShop.class)) {
            for (String way : ways) {
                get(shop, "/later/out/" + way + "?what=" + way, "00");
            }
            for (String way : ways) {
                get(shop, "/later/kept/" + way + "?what=" + way, "01");
                shop.root(root -> path(root).equals("/later/kept/" + way));
            }
            assertEquals(
                    ways.stream().map("/later/kept/"::concat).collect(Collectors.toSet()),
                    requests(shop, "/"));
            assertEquals(
                    Set.of(TRACE),
                    shop.roots().stream().map(root -> root.traceId).collect(Collectors.toSet()),
                    () -> shop.shapes().toString());
        }
    }

    /** By default every trace is recorded, and outgoing requests have the sampled flag. */
    @ParameterizedTest
    @MethodSource("jdks")
    void withoutTheSettingTheSampledFlagHasNoEffect(int jdk) throws Exception {
        try (Watched last = new Watched(jdk, LIMITED, JettyShop.class)) {
            String address = "http://127.0.0.1:" + last.port();
            try (Watched first = new Watched(jdk, RelayShop.class, address)) {
                get(first, "/out", "00");
                assertEquals(TRACE, first.root("GET /out").traceId);
                for (String way : WAYS) {
                    assertEquals(
                            TRACE, last.root(root -> path(root).equals("/out/" + way)).traceId);
                }
            }
        }
    }
}
