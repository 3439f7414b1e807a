package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Call;
import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.JettyShop;

import java.util.List;

/** Requests to Jetty 12 without servlets. */
class JettyIT {
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final String SPAN = "b7ad6b7169203331";

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    private static void checkLater(Call call, String status, boolean failed) {
        String told = call.shape() + " " + call.attributes;
        assertEquals(status, call.attributes.get("http.status"), told);
        assertEquals(failed, call.failed, told);
        assertTrue(call.end - call.start >= 250_000_000, told);
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void requestsAreRecorded(int jdk) throws Exception {
        try (Watched jetty = new Watched(jdk, JettyShop.class)) {
            assertEquals(
                    200,
                    jetty.get(
                            "/ads/17/pictures/550e8400-e29b-41d4-a716-446655440000?size=2",
                            "X-Request-Id",
                            "r-1",
                            "traceparent",
                            "00-" + TRACE + "-" + SPAN + "-01"));
            Call read = jetty.root("GET /ads/{id}/pictures/{id}");
            assertEquals(
                    "GET /ads/{id}/pictures/{id}(shop.JettyShop.handle(Request, Response, Callback)"
                            + "(shop.JettyShop.answer(String)))",
                    read.shape());
            assertEquals(2, read.kind);
            assertEquals("200", read.attributes.get("http.status"));
            assertEquals(
                    "/ads/17/pictures/550e8400-e29b-41d4-a716-446655440000",
                    read.attributes.get("http.path"));
            assertEquals("r-1", read.attributes.get("request.id"));
            assertEquals(TRACE, read.traceId);
            assertEquals(SPAN, read.parent);

            assertEquals(
                    200,
                    jetty.get(
                            "/plain",
                            "X-Correlation-ID",
                            "c-2",
                            "traceparent",
                            "00-" + TRACE + "-0000000000000000-01"));
            Call plain = jetty.root("GET /plain");
            assertNotEquals(TRACE, plain.traceId, "an invalid traceparent was not ignored");
            assertNull(plain.parent);
            assertEquals("c-2", plain.attributes.get("request.id"));

            assertEquals(500, jetty.get("/broken"));
            Call broken = jetty.root("GET /broken");
            assertTrue(broken.failed);
            assertEquals("500", broken.attributes.get("http.status"));
            assertTrue(
                    broken.attributes.get("exception").contains("no stock"),
                    broken.attributes::toString);

            assertEquals(503, jetty.get("/busy"));
            assertTrue(jetty.root("GET /busy").failed);

            assertEquals(404, jetty.get("/unknown/7"));
            Call unknown = jetty.root("GET (not found)");
            assertEquals("404", unknown.attributes.get("http.status"));
            assertTrue(!unknown.failed, "404 is an answer, not a failure");
            assertEquals(5, jetty.roots().size(), () -> jetty.shapes().toString());

            assertEquals(201, jetty.get("/later/7"));
            assertEquals(500, jetty.get("/later/broken"));
            assertEquals(404, jetty.get("/later/missing"));
            checkLater(jetty.root("GET /later/{id}"), "201", false);
            checkLater(jetty.root("GET /later/broken"), "500", true);
            checkLater(
                    jetty.root(
                            root -> "/later/missing".equals(root.attributes.get("http.path"))),
                    "404",
                    false);
        }
    }
}
