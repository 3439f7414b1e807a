package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.TomcatShop;
import shop.UndertowShop;
import shop.WrappingShop;

import java.util.List;

/** Requests to servlets and filters: in Tomcat, in Undertow, and without a server. */
class ServletIT {
    private static final String GET =
            "shop.TomcatShop.doGet(HttpServletRequest, HttpServletResponse)";
    private static final String FILTER =
            "shop.TomcatShop$Pass.doFilter(ServletRequest, ServletResponse, FilterChain)";

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void eachRequestIsRecordedOnce(int jdk) throws Exception {
        try (Watched tomcat = new Watched(jdk, TomcatShop.class)) {
            assertEquals(
                    200,
                    tomcat.get(
                            "/shop/ads/7;jsessionid=1?x=y",
                            "X-Request-Id",
                            "r-1",
                            "traceparent",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"));
            Call read = tomcat.root("GET /shop/ads/*");
            assertEquals("GET /shop/ads/*(" + FILTER + "(" + GET + "))", read.shape());
            assertEquals("0af7651916cd43dd8448eb211c80319c", read.traceId);
            assertEquals("b7ad6b7169203331", read.parent);
            assertEquals("r-1", read.attributes.get("request.id"));
            assertEquals("200", read.attributes.get("http.status"));

            assertEquals(200, tomcat.get("/shop/basket/12"));
            assertEquals(
                    "GET /shop/basket/{id}(" + FILTER + "(" + GET + "))",
                    tomcat.root("GET /shop/basket/{id}").shape());

            assertEquals(200, tomcat.get("/shop/forward"));
            assertEquals(
                    "GET /shop/forward(" + FILTER + "(" + GET + "(" + GET + ")))",
                    tomcat.root("GET /shop/forward").shape());

            assertEquals(500, tomcat.get("/shop/broken"));
            Call broken = tomcat.root("GET /shop/broken");
            assertTrue(broken.failed);
            assertEquals("500", broken.attributes.get("http.status"));

            assertEquals(404, tomcat.get("/shop/missing"));
            Call missing = tomcat.root("GET (not found)");
            assertEquals("404", missing.attributes.get("http.status"));
            assertEquals("/shop/missing", missing.attributes.get("http.path"));

            assertEquals(200, tomcat.get("/shop/later"));
            assertEquals(
                    "GET /shop/later("
                            + FILTER
                            + "("
                            + GET
                            + "(shop.TomcatShop.later(AsyncContext))))",
                    tomcat.root("GET /shop/later").shape());

            // The error page of /broken, a second dispatch of the same request, is recorded as a
            // method call.
            long requests = tomcat.roots().stream().filter(root -> root.kind == 2).count();
            assertEquals(6, requests, () -> tomcat.shapes().toString());
        }
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void javaxServletsAreRecorded(int jdk) throws Exception {
        try (Watched undertow = new Watched(jdk, UndertowShop.class)) {
            assertEquals(
                    200,
                    undertow.get(
                            "/shop/ads/7",
                            "traceparent",
                            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
            Call read = undertow.root("GET /shop/ads/*");
            assertEquals(
                    "GET /shop/ads/*(shop.UndertowShop.doGet(HttpServletRequest,"
                        + " HttpServletResponse))",
                    read.shape());
            assertEquals("0af7651916cd43dd8448eb211c80319c", read.traceId);
            assertEquals("200", read.attributes.get("http.status"));
            assertEquals(500, undertow.get("/shop/ads/broken"));
            assertTrue(
                    undertow.root(root -> "500".equals(root.attributes.get("http.status"))).failed);
        }
    }

    /**
     * If {@code getStatus} or {@code isAsyncStarted} throws, the request is recorded without a
     * status. If {@code getHeader} throws, the request is not recorded.
     */
    @ParameterizedTest
    @MethodSource("jdks")
    void aWrapperThatThrowsAffectsOnlyItsOwnRequest(int jdk) throws Exception {
        try (Watched shop = new Watched(jdk, WrappingShop.class)) {
            shop.end();
            for (String api : List.of("jakarta", "javax")) {
                for (String without : List.of("without-getStatus", "without-isAsyncStarted")) {
                    Call call = shop.root("GET /" + api + "/" + without);
                    assertNull(call.attributes.get("http.status"));
                    assertFalse(call.failed);
                }
                Call whole = shop.root("GET /" + api + "/whole");
                assertEquals("200", whole.attributes.get("http.status"));
            }
            long requests = shop.roots().stream().filter(root -> root.kind == 2).count();
            assertEquals(6, requests, () -> shop.shapes().toString());
        }
    }
}
