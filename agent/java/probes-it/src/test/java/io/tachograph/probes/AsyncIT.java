package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.JdkServerShop;
import shop.JettysShop;
import shop.UndertowShop;
import shop.later.AsyncShop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** If another thread answers a request, the record of the request ends with the answer. */
class AsyncIT {
    private static final long LATER_NS = 250_000_000;

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    /** A request and its expected record. */
    private record Case(String path, String operation, int status, String exception, boolean late) {
        void check(Watched shop) throws Exception {
            String plain = path.replaceAll("[?#].*", "");
            Call root =
                    shop.root(
                            call ->
                                    call.operation.equals(operation)
                                            && plain.equals(call.attributes.get("http.path"))
                                            && String.valueOf(status)
                                                    .equals(call.attributes.get("http.status")));
            String told = path + ": " + root.shape() + " " + root.attributes;
            assertEquals(status >= 500, root.failed, told);
            assertTrue(!late || root.end - root.start >= LATER_NS, told);
            if (exception != null) {
                assertNotNull(root.attributes.get("exception"), told);
                assertTrue(root.attributes.get("exception").contains(exception), told);
            }
        }
    }

    private static Case good(String path, String operation, int status, boolean late) {
        return new Case(path, operation, status, null, late);
    }

    private static Case bad(String path, String operation, int status, String exception) {
        return new Case(path, operation, status, exception, true);
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void requestsEndWhenTheyAreAnswered(int jdk) throws Exception {
        List<Case> cases = new ArrayList<>();
        cases.add(good("/users/eve", "GET /users/{name}", 200, false));
        cases.add(good("/callable/7", "GET /callable/{id}", 200, true));
        cases.add(bad("/callable/bad", "GET /callable/{id}", 500, "no stock"));
        cases.add(good("/callable/gone", "GET /callable/{id}", 410, true));
        cases.add(good("/deferred/now", "GET /deferred/{id}", 200, false));
        cases.add(bad("/deferred/late", "GET /deferred/{id}", 503, null));
        cases.add(good("/future/7", "GET /future/{id}", 200, true));
        cases.add(bad("/future/bad", "GET /future/{id}", 500, "no stock"));
        cases.add(good("/mono/7", "GET /mono/{id}", 200, true));
        cases.add(bad("/mono/bad", "GET /mono/{id}", 500, "no stock"));
        cases.add(good("/flux/7", "GET /flux/{id}", 200, true));
        cases.add(good("/task/7", "GET /task/{id}", 200, true));
        cases.add(good("/stream/7", "GET /stream/{id}", 200, true));
        cases.add(good("/rest/goods/7/price", "GET /rest/goods/{id}/price", 200, false));
        cases.add(good("/rest/goods/later/7", "GET /rest/goods/later/{id}", 200, true));
        cases.add(bad("/rest/goods/later/bad", "GET /rest/goods/later/{id}", 500, null));
        cases.add(good("/rest/goods/stage/7", "GET /rest/goods/stage/{id}", 200, true));
        cases.addAll(later("/later/x", "GET /later/*"));
        cases.add(good("/nowhere", "GET (not found)", 404, false));
        try (Watched shop = new Watched(jdk, AsyncShop.class)) {
            assertEquals(
                    cases.stream().map(each -> each.path + " " + each.status).toList(),
                    ask(shop, cases));
            for (Case each : cases) {
                each.check(shop);
            }
            assertEquals(
                    cases.size(),
                    shop.roots().stream().filter(root -> root.kind == 2).count(),
                    () -> shop.shapes().toString());
        }
    }

    /** The servlets run in Undertow. */
    @ParameterizedTest
    @MethodSource("jdks")
    void javaxServletsAreRecordedToo(int jdk) throws Exception {
        List<Case> cases = later("/shop/later/x", "GET /shop/later/*");
        try (Watched shop = new Watched(jdk, UndertowShop.class)) {
            assertEquals(
                    cases.stream().map(each -> each.path + " " + each.status).toList(),
                    ask(shop, cases));
            for (Case each : cases) {
                each.check(shop);
            }
        }
    }

    /** Jetty 9, 11 and 12, in one program. */
    @ParameterizedTest
    @MethodSource("jdks")
    void servletsInThreeVersionsOfJettyAreRecorded(int jdk) throws Exception {
        String libraries = System.getProperty("other.libraries");
        try (Watched shop = new Watched(jdk, Map.of(), JettysShop.class, libraries)) {
            assertTrue(shop.awaitOutput("PORTS "), shop.output());
            String line =
                    shop.output().lines().filter(each -> each.startsWith("PORTS")).findFirst().get();
            String[] ports = line.substring("PORTS ".length(), line.length() - 1).split(",");
            for (String port : ports) {
                // The first server has Servlet 3.1, which does not report the servlet's mapping.
                boolean isOld = port.equals(ports[0]);
                List<Case> cases =
                        later(
                                "/shop/later/" + port,
                                isOld ? "GET /shop/later/{id}/{id}" : "GET /shop/later/*",
                                isOld ? "GET (not found)" : "GET /shop/later/*");
                List<String> answers = new ArrayList<>();
                for (Case each : cases) {
                    answers.add(each.path + " " + shop.get(Integer.parseInt(port), each.path));
                }
                assertEquals(
                        cases.stream().map(each -> each.path + " " + each.status).toList(),
                        answers);
                for (Case each : cases) {
                    each.check(shop);
                }
            }
        }
    }

    /** The JDK's own server, whose routes are its contexts. */
    @ParameterizedTest
    @MethodSource("jdks")
    void requestsToTheServerOfTheJdkEndWhenTheyAreAnswered(int jdk) throws Exception {
        List<Case> cases = new ArrayList<>();
        cases.add(good("/", "GET /", 200, false));
        cases.add(good("/nowhere/at/all", "GET (not found)", 404, false));
        cases.add(good("/ads", "GET /ads", 200, false));
        cases.add(good("/ads/name7", "GET /ads/*", 200, false));
        cases.add(good("/ads/name8?what=later", "GET /ads/*", 201, true));
        cases.add(good("/ads/name9?what=stream", "GET /ads/*", 200, true));
        cases.add(good("/ads/name10?what=empty", "GET /ads/*", 204, true));
        cases.add(bad("/ads/name11?what=bad", "GET /ads/*", 503, null));
        try (Watched shop = new Watched(jdk, JdkServerShop.class)) {
            assertEquals(
                    cases.stream().map(each -> each.path + " " + each.status).toList(),
                    ask(shop, cases));
            assertThrows(IOException.class, () -> shop.get("/ads/name12?what=throws"));
            assertThrows(IOException.class, () -> shop.get("/ads/name13?what=close"));
            assertThrows(IOException.class, () -> shop.get("/ads/name14?what=close-later"));
            for (Case each : cases) {
                each.check(shop);
            }
            Call thrown = shop.root(call -> "/ads/name12".equals(call.attributes.get("http.path")));
            assertTrue(thrown.failed, thrown::shape);
            assertNull(thrown.attributes.get("http.status"), "a status is recorded, although no answer was sent");
            assertEquals(
                    "java.lang.IllegalStateException: no stock",
                    thrown.attributes.get("exception"));
            for (String path : List.of("/ads/name13", "/ads/name14")) {
                Call closed = shop.root(call -> path.equals(call.attributes.get("http.path")));
                assertEquals("GET /ads/*", closed.operation);
                assertNull(closed.attributes.get("http.status"));
            }
            // Calls of the handler are children of the request. The submitted work is a child of
            // the call that submits it.
            Call told =
                    shop.root(call -> "/ads/name8".equals(call.attributes.get("http.path")));
            Call answering =
                    shop.root(
                            call ->
                                    call.operation.contains(".answer(")
                                            && call.traceId.equals(told.traceId));
            assertEquals(told.children.get(0).children.get(0).span, answering.parent);
            assertEquals(
                    "GET /ads(shop.JdkServerShop$Passing.doFilter(HttpExchange, Filter$Chain)"
                            + "(shop.JdkServerShop.ads(HttpExchange)"
                            + "(shop.JdkServerShop.send(HttpExchange, int))))",
                    shop.root("GET /ads").shape());
            assertEquals(
                    cases.size(),
                    shop.roots().stream()
                            .filter(root -> root.attributes.containsKey("http.status"))
                            .count(),
                    () -> shop.shapes().toString());
        }
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void requestsToTheServerOfTheJdkHaveTheirCallerAsParent(int jdk) throws Exception {
        String trace = "0af7651916cd43dd8448eb211c80319c";
        String caller = "b7ad6b7169203331";
        try (Watched shop = new Watched(jdk, JdkServerShop.class)) {
            shop.get(
                    "/ads",
                    "traceparent",
                    "00-" + trace + "-" + caller + "-01",
                    "X-Request-Id",
                    "r-7");
            Call root = shop.root("GET /ads");
            assertEquals(trace, root.traceId);
            assertEquals(caller, root.parent);
            assertEquals("r-7", root.attributes.get("request.id"));
        }
    }

    /**
     * Names of requests come from routes, so neither many paths of one route nor the requests of a
     * scanner reach the limit on the number of names.
     */
    @Test
    void pathsAndScannersDoNotUseUpTheNames() throws Exception {
        try (Watched shop = new Watched(17, AsyncShop.class)) {
            for (int at = 1; at <= 1_100; at++) {
                assertEquals(200, shop.get("/users/name" + at));
            }
            for (int at = 1; at <= 1_100; at++) {
                assertEquals(404, shop.get("/scan/admin-" + at + ".php"));
            }
            assertEquals(200, shop.get("/rest/goods/7/price"));
            assertEquals(200, shop.get("/static.txt"));
            // Each thread of the server has a buffer of its own, so the last request may arrive first.
            Map<String, Long> names =
                    shop.roots(2_202, call -> call.end != null).stream()
                            .collect(
                                    Collectors.groupingBy(
                                            call -> call.operation, Collectors.counting()));
            assertEquals(
                    Map.of(
                            "GET /users/{name}",
                            1_100L,
                            "GET (not found)",
                            1_100L,
                            "GET /rest/goods/{id}/price",
                            1L,
                            "GET /static.txt",
                            1L),
                    names);
        }
    }

    private static List<String> ask(Watched shop, List<Case> cases) throws Exception {
        List<String> answers = new ArrayList<>();
        for (Case each : cases) {
            answers.add(each.path + " " + shop.get(each.path));
        }
        return answers;
    }

    /** The cases of {@code LaterJakarta} and {@code LaterJavax}. */
    static List<Case> later(String path, String operation) {
        return later(path, operation, operation);
    }

    private static List<Case> later(String path, String operation, String missing) {
        return List.of(
                good(path + "/1?what=sync", operation, 202, false),
                good(path + "/2?what=complete", operation, 201, true),
                good(path + "/3?what=missing", missing, 404, true),
                good(path + "/4?what=twice", operation, 201, true),
                good(path + "/5?what=dispatch", operation, 201, true),
                bad(path + "/6?what=dispatch&then=fail", operation, 500, "no lamp"),
                bad(path + "/7?what=timeout", operation, 500, null),
                new Case(path + "/8?what=throws", operation, 500, "no stock", false),
                good(path + "/9?what=at-once", operation, 203, false),
                good(path + "/10?what=dispatched-at-once", operation, 201, false));
    }
}
