package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RouteTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "null",
            textBlock =
                    """
/                                            | /
null                                         | /
''                                           | /
/ads                                         | /ads
/ads/                                        | /ads/
/ads/17                                      | /ads/{id}
/ads/-17/edit                                | /ads/{id}/edit
/ads/2026-11-21                              | /ads/{id}
/users/550e8400-e29b-41d4-a716-446655440000  | /users/{id}
/objects/5f2b8c9d1e3a4b6c8d7e9f01            | /objects/{id}
/v2/beef                                     | /v2/beef
/a1b2                                        | /a1b2
/facade/decade                               | /facade/decade
/ads;jsessionid=17                           | /ads
/ads?id=17                                   | /ads
/x/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | /x/{id}
/a/b/c/d/e/f/g/h/i/j                         | /a/b/c/d/e/f/g/h/...
/a/b/c/d/e/f/g/h/i                           | /a/b/c/d/e/f/g/h/...
/a/b/c/d/e/f/g/h                             | /a/b/c/d/e/f/g/h
/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz    | /zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz
/zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz   | /{id}
/abcdef012345678                             | /abcdef012345678
/abcdef0123456789                            | /{id}
ads/17                                       | /ads/{id}
""")
    void idsInPathsAreReplaced(String path, String route) {
        StringBuilder to = new StringBuilder();
        Route.append(to, path);
        assertEquals(route, to.toString());
    }

    @Test
    void patternsThatMatchEverythingAreIgnored() {
        assertEquals(null, HttpServer.route("/"));
        assertEquals(null, HttpServer.route("/*"));
        assertEquals(null, HttpServer.route(""));
        assertEquals(null, HttpServer.route(null));
        assertEquals("/ads/*", HttpServer.route("/ads/*"));
        assertEquals("/*.jsp", HttpServer.route("*.jsp"));
    }
}
