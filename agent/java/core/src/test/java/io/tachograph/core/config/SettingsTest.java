package io.tachograph.core.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class SettingsTest {
    @TempDir Path folder;

    private Settings load(String file, Map<String, String> environment) throws Exception {
        Path path = folder.resolve("agent.toml");
        Files.writeString(path, file);
        return Settings.load(path.toString(), environment);
    }

    @Test
    void defaultsHaveNoWarnings() {
        Settings settings = Settings.load(null, Map.of("PATH", "/bin"));
        assertEquals(List.of(), settings.warnings());
        assertEquals("127.0.0.1:7071", settings.text(Setting.SERVER));
        assertEquals(100_000_000, settings.number(Setting.BLOCK_MAX));
        assertEquals(16 << 20, settings.number(Setting.QUEUE));
        assertEquals(List.of(), settings.list(Setting.INCLUDE));
        assertEquals(0, settings.number(Setting.TRACES_MAX), "every trace is kept");
    }

    @Test
    void environmentWinsOverFile() throws Exception {
        Settings settings =
                load("service = \"file\"\nhost = 'h'\n", Map.of("TACHO_SERVICE", "größe"));
        assertEquals("größe", settings.text(Setting.SERVICE));
        assertEquals("h", settings.text(Setting.HOST));
        assertEquals(List.of(), settings.warnings());
    }

    @Test
    void everyKindOfValue() throws Exception {
        Settings settings =
                load(
                        """
                        # comment
                        include = [ "com.shop..*", # one
                                    'com.other.*',
                                  ]
                        samplers = false
                        block_max = 250   # ms
                        sample_interval = "2s"
                        queue = "1MiB"
                        buffer = 65_536
                        service = "tab\\t quote\\" \\u00f6 \\U0001F680"
                        """,
                        Map.of());
        assertEquals(List.of(), settings.warnings());
        assertEquals(List.of("com.shop..*", "com.other.*"), settings.list(Setting.INCLUDE));
        assertEquals(250_000_000, settings.number(Setting.BLOCK_MAX));
        assertEquals(2_000_000_000L, settings.number(Setting.SAMPLE_INTERVAL));
        assertEquals(1 << 20, settings.number(Setting.QUEUE));
        assertEquals(65_536, settings.count(Setting.BUFFER));
        assertEquals("tab\t quote\" ö 🚀", settings.text(Setting.SERVICE));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
servise = "x"          | key servise: there is no such setting, did you mean service?
when_full = "wait"     | key when_full: drop or block was expected, not "wait"; using drop
buffer = "lots"        | key buffer: a whole number was expected
overhead_max = "101%"  | key overhead_max: a share such as 1% or 0.5% was expected, not "101%"; using 0
overhead_max = "1"     | key overhead_max: a share such as 1% or 0.5% was expected
aggregate_above = "1M" | key aggregate_above: a whole number was expected
block_max = "1 hour"   | key block_max: a duration such as 100ms or 5s was expected
service = shop         | line 1, service: text must be in quotes: shop
service = "shop        | line 1, service: the string has no closing quote
service "shop"         | line 1, service: = was expected after the key
service = "a" "b"      | line 1, service: nothing more was expected after the value
include = ["a" "b"]    | line 1, include: , or ] was expected in the array
include = ["a",        | line 1, include: text must be in quotes: host
service = "\\x"        | line 1, service: unknown escape
[section]              | line 1: tables are not supported
= 3                    | line 1: a key was expected
enabled = 1            | key enabled: true or false was expected
""")
    void faultsAreNamed(String file, String expected) throws Exception {
        Settings settings = load(file + "\nhost = \"kept\"\n", Map.of());
        assertTrue(
                settings.warnings().stream().anyMatch(warning -> warning.contains(expected)),
                () -> settings.warnings().toString());
    }

    @Test
    void theGoodLinesOfABrokenFileAreKept() throws Exception {
        Settings settings =
                load(
                        "service = shop\nhost = \"kept\"\nhost = \"twice\"\n",
                        Map.of("TACHO_HOTS", "x"));
        assertEquals("kept", settings.text(Setting.HOST));
        assertEquals(3, settings.warnings().size());
        assertTrue(settings.warnings().get(2).contains("did you mean TACHO_HOST?"));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "1%, 10000",
        "0.5 %, 5000",
        "0.0001%, 1",
        "99.9999%, 999999",
        "100%, 1000000"
    })
    void sharesAreMillionths(String text, long expected) throws Exception {
        Settings settings = load("overhead_max = \"" + text + "\"\n", Map.of());
        assertEquals(List.of(), settings.warnings());
        assertEquals(expected, settings.number(Setting.OVERHEAD_MAX));
    }
}
