package io.tachograph.core.send;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ServerAddressTest {
    @ParameterizedTest
    @CsvSource({
        "127.0.0.1:7071,127.0.0.1:7071",
        "tacho.local,tacho.local:7071",
        "[::1]:80,[::1]:80",
        "[::1],[::1]:7071",
        "::1,::1:7071",
        "fe80::1%eth0,fe80::1%eth0:7071",
        "größe.example_1:1,größe.example_1:1",
        "host:65535,host:65535"
    })
    void validAddressesAreParsed(String text, String expected) {
        assertEquals(expected, ServerAddress.parse(text).toString());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", ":", "host:", "host:x", "host:0", "host:65536", ":7071", "host:123456",
                "http://host:7071", "http://host", "host:7071/path", "ho st:7071", "x:y:z",
                        "[host]:7071", "[::1", "[::1]x"
            })
    void invalidAddressesAreRefused(String text) {
        var fault = assertThrows(IllegalArgumentException.class, () -> ServerAddress.parse(text));
        assertEquals("expected host:port", fault.getMessage());
    }
}
