package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.CallingShop;
import shop.JettyShop;
import shop.PromisingShop;
import shop.RawShop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Requests that a program sends with the HTTP clients of the JDK. */
class HttpClientIT {
    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void callsOfTwoProgramsFormOneTrace(int jdk) throws Exception {
        try (Watched called = new Watched(jdk, JettyShop.class)) {
            String address = "127.0.0.1:" + called.port();
            try (Watched calling = new Watched(jdk, CallingShop.class, "http://" + address)) {
                calling.end();
                check(
                        calling.root("shop.CallingShop.send()"),
                        "GET " + address,
                        called.root("GET /send/{id}"));
                check(
                        calling.root("shop.CallingShop.urlConnection()"),
                        "GET " + address,
                        called.root("GET /url/{id}"));

                // A request of sendAsync has its own segment, because it ends on another thread.
                Call async =
                        calling.root(root -> "/async/2".equals(root.attributes.get("http.path")));
                assertEquals(calling.root("shop.CallingShop.sendAsync()").span, async.parent);
                assertEquals("200", async.attributes.get("http.status"));
                assertEquals(async.span, called.root("GET /async/{id}").parent);
                assertEquals(async.traceId, called.root("GET /async/{id}").traceId);
                Call broken =
                        calling.root(
                                root -> "/broken-promise".equals(root.attributes.get("http.path")));
                assertTrue(
                        broken.failed
                                && broken.attributes.get("exception").contains("ConnectException"),
                        broken.attributes::toString);

                Call post = calling.root("shop.CallingShop.post()");
                assertEquals("shop.CallingShop.post()(POST " + address + ")", post.shape());
                Call posted = called.root("POST /post/{id}");
                assertEquals(post.traceId, posted.traceId);
                assertEquals(
                        post.span,
                        posted.parent,
                        "the header must name the method, because the call of kind http-client has not begun");

                Call foreign = calling.root(root -> root.operation.endsWith(".foreign()"));
                assertTrue(
                        foreign.children.stream().anyMatch(call -> call.kind == 3 && call.failed),
                        foreign::shape);

                Call missing = calling.root("shop.CallingShop.missing()").children.get(0);
                assertEquals("404", missing.attributes.get("http.status"));
                assertTrue(!missing.failed, "404 is an answer, not a failure");
                Call refused = calling.root("shop.CallingShop.refused()").children.get(0);
                assertEquals("GET 127.0.0.1:1!", refused.shape());
                assertEquals(
                        "r-9",
                        called.root("GET /send/{id}").attributes.get("request.id"),
                        "the other headers must be sent too");
            }
        }
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void requestsAreUnchangedApartFromTheTraceHeader(int jdk) throws Exception {
        try (Watched without = new Watched(jdk, Map.of("TACHO_ENABLED", "false"), RawShop.class);
                Watched with = new Watched(jdk, RawShop.class)) {
            without.end();
            with.end();
            assertEquals(58, lines(without, "< (GET|POST|DELETE) /(?!there).*").size());
            assertEquals(lines(without, "(<|answer) .*"), lines(with, "(<|answer) .*"));
            assertEquals(
                    64 - 6,
                    lines(with, "< traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-01").size(),
                    "all requests must have the header, except those to /told, which have their own traceparent");
            List<String> moved = told(with, "/moved");
            List<String> there = told(with, "/there");
            assertEquals(4, moved.size());
            assertTrue(there.containsAll(moved),
                    "a redirected request lacks the header of the first request: " + moved + " " + there);
        }
    }

    /** An open request needs no buffer. */
    @ParameterizedTest
    @MethodSource("jdks")
    void manyRequestsMayBeOpenAtOnce(int jdk) throws Exception {
        try (Watched shop = new Watched(jdk, PromisingShop.class)) {
            List<Call> answered =
                    shop.roots(
                            PromisingShop.ANSWERED,
                            call -> call.end != null && isTo("/answered", call));
            assertEquals(PromisingShop.ANSWERED, answered.size());
            for (Call call : answered) {
                assertEquals("200", call.attributes.get("http.status"));
                assertTrue(!call.failed);
            }
            List<Call> silent =
                    shop.roots(PromisingShop.SILENT, call -> isTo("/silent", call));
            assertEquals(PromisingShop.SILENT, silent.size());
            assertTrue(silent.stream().allMatch(call -> call.end == null), "a request has ended, although none was answered");
        }
    }

    private static boolean isTo(String path, Call call) {
        return path.equals(call.attributes.get("http.path"));
    }

    /** The values of the header {@code traceparent} in requests to {@code path}, in order. */
    private static List<String> told(Watched shop, String path) throws Exception {
        List<String> told = new ArrayList<>();
        boolean isWanted = false;
        for (String line : shop.output().lines().toList()) {
            if (line.matches("< [A-Z]+ /.* HTTP/1.1")) {
                isWanted = line.contains(" " + path + " ");
            }
            if (isWanted && line.startsWith("< traceparent: ")) {
                told.add(line.substring("< traceparent: ".length()));
            }
        }
        return told;
    }

    /**
     * The lines of the output that match the pattern, without the port. A pattern that begins with
     * {@code (<} excludes the trace headers of the agent.
     */
    private static List<String> lines(Watched shop, String pattern) throws Exception {
        return shop.output()
                .lines()
                .filter(line -> line.matches(pattern))
                .filter(line -> !pattern.startsWith("(<") || !line.startsWith("< traceparent: 00"))
                .map(line -> line.replaceAll("127.0.0.1:[0-9]+", "server"))
                .collect(Collectors.toList());
    }

    private static void check(Call method, String client, Call server) {
        assertEquals(method.operation + "(" + client + ")", method.shape());
        Call sent = method.children.get(0);
        assertEquals(3, sent.kind);
        assertEquals(sent.traceId, server.traceId);
        assertEquals(sent.span, server.parent);
    }
}
