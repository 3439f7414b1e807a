package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Session;
import io.tachograph.core.wire.Vectors;

import org.junit.jupiter.api.Test;

import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

class HelloTest {
    @Test
    void theBytesMatchTheVectors() throws Exception {
        Vectors.Case expected = Vectors.read("control.vec").get("hello-with-secret");
        Session session = Session.of(HexFormat.of().parseHex(expected.one("secret")));
        String id = String.format("%016x%016x", session.high(), session.low());
        assertEquals(expected.one("session"), id);
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : expected.all("pair")) {
            pairs.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        }
        assertEquals(
                HexFormat.of().formatHex(expected.frame()),
                HexFormat.of().formatHex(Hello.frame(session, pairs)));
    }
}
