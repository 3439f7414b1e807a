package io.tachograph.core.send;

import static java.nio.charset.StandardCharsets.UTF_8;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.bootstrap.Session;
import io.tachograph.core.wire.Vectors;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

class HelloTest {
    @ParameterizedTest
    @CsvSource({"control.vec, hello-with-secret", "token.vec, hello-with-token"})
    void theBytesMatchTheVectors(String file, String name) throws Exception {
        Vectors.Case expected = Vectors.read(file).get(name);
        byte[] token = String.join("", expected.all("token")).getBytes(UTF_8);
        Session session = Session.of(HexFormat.of().parseHex(expected.one("secret")));
        String id = String.format("%016x%016x", session.high(), session.low());
        assertEquals(expected.one("session"), id);
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : expected.all("pair")) {
            pairs.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
        }
        assertEquals(
                HexFormat.of().formatHex(expected.frame()),
                HexFormat.of().formatHex(Hello.frame(session, pairs, token)));
    }
}
