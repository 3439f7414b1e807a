package io.tachograph.core.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

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
        assertEquals(0, settings.number(Setting.TRACES_MAX), "by default every trace must be recorded");
    }

    @Test
    void theEnvironmentOverridesTheFile() throws Exception {
        Settings settings =
                load("service = \"file\"\nhost = 'h'\n", Map.of("TACHO_SERVICE", "größe"));
        assertEquals("größe", settings.text(Setting.SERVICE));
        assertEquals("h", settings.text(Setting.HOST));
        assertEquals(List.of(), settings.warnings());
    }

    /** {@code crates/cli/src/command/attach/settings.rs} has the same test with a TOML library. */
    @Test
    void aFileHasTheValuesThatTachoAttachReads() throws Exception {
        Path folder = Path.of("../../../testdata/settings");
        ConfigFile file = ConfigFile.parse(Files.readString(folder.resolve("agent.toml")));
        assertEquals(List.of(), file.faults());
        String lines =
                new TreeMap<>(file.values())
                        .entrySet().stream()
                                .map(value -> value.getKey() + "=" + value.getValue() + "\n")
                                .collect(Collectors.joining());
        assertEquals(Files.readString(folder.resolve("agent.txt")), lines);
    }

    /** If one of these values counted as absent, the connection would not be encrypted. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "tls_ca = /etc/ca.pem",
                "tls_ca = '/etc/ca.pem",
                "tls_ca = ",
                "tls_ca: '/etc/ca.pem'",
                "tls_ca '/etc/ca.pem'",
                "tls_ca = '/etc/ca.pem' '/etc/other.pem'",
                "tls_ca = []",
                "TLS_CA = [ ]",
                "tls_ca = ['']",
                "tls_ca = ['/etc/ca.pem']",
                "\"tls_ca\" = '/etc/ca.pem'",
                "agent.tls_ca = '/etc/ca.pem'",
                "include = [\ntls_ca = '/etc/ca.pem'",
                "tls_ca = ' '",
                "tls_ca = '\t'",
            })
    void anUnreadableAuthorityDoesNotDisableTls(String line) throws Exception {
        Settings settings = load("host = 'h'\n" + line + "\nservice = 's'\n", Map.of());
        assertEquals(Settings.UNREADABLE, settings.text(Setting.TLS_CA));
        assertEquals("s", settings.text(Setting.SERVICE));
        String last = settings.warnings().get(settings.warnings().size() - 1);
        assertTrue(last.matches("(?i).*agent.toml tls_ca=.*; using <unreadable>"), last);
        Settings given = load(line, Map.of("TACHO_TLS_CA", "system"));
        assertEquals("system", given.text(Setting.TLS_CA));
    }

    @Test
    void aBlankAuthorityDoesNotDisableTls() {
        Settings settings = Settings.load(null, Map.of("TACHO_TLS_CA", " "));
        assertEquals(Settings.UNREADABLE, settings.text(Setting.TLS_CA));
        String expected = "TACHO_TLS_CA= : expected the path of a file; using <unreadable>";
        assertEquals(List.of(expected), settings.warnings());
    }

    @Test
    void anUnreadableFileDoesNotDisableTls() throws Exception {
        String missing = folder.resolve("missing.toml").toString();
        Path latin = Files.write(folder.resolve("latin.toml"), new byte[] {'#', (byte) 0xe9});
        for (String file : List.of(missing, latin.toString())) {
            Settings settings = Settings.load(file, Map.of());
            assertEquals(Settings.UNREADABLE, settings.text(Setting.TLS_CA));
            Settings given = Settings.load(file, Map.of("TACHO_TLS_CA", "a.pem"));
            assertEquals("a.pem", given.text(Setting.TLS_CA));
            Settings none = Settings.load(file, Map.of("TACHO_TLS_CA", ""));
            assertEquals("", none.text(Setting.TLS_CA));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "token = 5eC",
                "token = '5eC",
                "token: '5eC'",
                "token = '5eC' '5eC'",
                "token = []",
                "TOKEN = ['5eC']",
                "\"token\" = '5eC'",
            })
    void anUnreadableTokenIsNotIgnoredAndNotShown(String line) throws Exception {
        Settings settings = load(line, Map.of());
        assertEquals(Settings.UNREADABLE_TOKEN, settings.text(Setting.TOKEN));
        assertTrue(!settings.warnings().isEmpty());
        assertEquals(-1, String.join(" ", settings.warnings()).indexOf("5eC"));
        Settings given = load(line, Map.of("TACHO_TOKEN", "t"));
        assertEquals("t", given.text(Setting.TOKEN));
        Settings file = load(line, Map.of("TACHO_TOKEN_FILE", "/t"));
        assertEquals("", file.text(Setting.TOKEN));
        assertEquals("/t", file.text(Setting.TOKEN_FILE));
    }

    @Test
    void blanksOfATokenAreKept() throws Exception {
        assertEquals(" 5eC", load("token = ' 5eC'", Map.of()).text(Setting.TOKEN));
        Settings settings = Settings.load(null, Map.of("TACHO_TOKEN", " ", "TACHO_TOKEN_FILE", ""));
        assertEquals(" ", settings.text(Setting.TOKEN));
        assertEquals(List.of(), settings.warnings());
        Settings both = Settings.load(null, Map.of("TACHO_TOKEN", " ", "TACHO_TOKEN_FILE", "/t"));
        assertEquals(" ", both.text(Setting.TOKEN), "the agent must report that both are set");
        Settings blank = Settings.load(null, Map.of("TACHO_TOKEN_FILE", " "));
        assertEquals(Settings.UNREADABLE, blank.text(Setting.TOKEN_FILE));
        Settings array = load("token_file = ['/t']", Map.of());
        assertEquals(Settings.UNREADABLE, array.text(Setting.TOKEN_FILE));
        assertEquals("", load("insecure_token = yes", Map.of()).text(Setting.TOKEN));
    }

    @Test
    void otherInvalidLinesDoNotChangeTls() throws Exception {
        Settings settings = load("service = s\ninclude = [\n", Map.of());
        assertEquals("", settings.text(Setting.TLS_CA));
        Settings twice = load("tls_ca = 'a.pem'\ntls_ca = 'b.pem'\n", Map.of());
        assertEquals("a.pem", twice.text(Setting.TLS_CA));
    }

    @Test
    void settingsOfOtherAgentsAreReported() {
        Settings settings = Settings.load(null, Map.of("TACHO_CHILDREN", "false"));
        assertEquals(
                List.of("TACHO_CHILDREN: not a setting of the Java agent"), settings.warnings());
    }

    @Test
    void valuesOfEveryKindAreRead() throws Exception {
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
servise = "x"          | toml servise: there is no such setting, did you mean service?
when_full = "wait"     | toml when_full=wait: expected drop or block; using drop
buffer = "lots"        | toml buffer=lots: expected a power of two; using 32768
buffer = 1000          | toml buffer=1000: a power of two is needed; using 1024
overhead_max = "101%"  | toml overhead_max=101%: expected a share such as 1% or 0.5%; using 0
overhead_max = "1"     | toml overhead_max=1: expected a share such as 1% or 0.5%
aggregate_above = "1M" | toml aggregate_above=1M: expected a whole number; using 0
block_max = "1 hour"   | toml block_max=1 hour: expected a duration such as 100ms or 5s; using 100ms
service = shop         | line 1, service: text must be in quotes
service = "shop        | line 1, service: the string has no closing quote
service "shop"         | line 1, service: = was expected after the key
service = "a" "b"      | line 1, service: nothing more was expected after the value
include = ["a" "b"]    | line 1, include: , or ] was expected in the array
include = ["a",        | line 1, include: text must be in quotes
service = "\\x"        | line 1, service: unknown escape
[section]              | line 1: tables are not supported
= 3                    | line 1: a key was expected
enabled = 1            | toml enabled=1: expected true or false; using true
""")
    void invalidLinesAndValuesAreReported(String file, String expected) throws Exception {
        Settings settings = load(file + "\nhost = \"kept\"\n", Map.of());
        assertTrue(
                settings.warnings().stream().anyMatch(warning -> warning.contains(expected)),
                () -> settings.warnings().toString());
    }

    @Test
    void theValidLinesOfAnInvalidFileApply() throws Exception {
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

    /** Columns: setting, text, value as in {@link Settings#number}, warning. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
BUFFER              | 64         | 64              |
BUFFER              | 16777216   | 16777216        |
BUFFER              | 7          | 32768           | at least 64 is needed; using 32768
BUFFER              | 0          | 32768           | at least 64 is needed; using 32768
BUFFER              | 65         | 128             | a power of two is needed; using 128
BUFFER              | 16777217   | 32768           | at most 16777216 is allowed; using 32768
VIRTUAL_BUFFER      | 63         | 64              | a power of two is needed; using 64
THREADS_MAX         | 64         | 64              |
THREADS_MAX         | 0          | 1024            | at least 64 is needed; using 1024
THREADS_MAX         | 65         | 128             | a multiple of 64 is needed; using 128
THREADS_MAX         | 1048576    | 1048576         |
THREADS_MAX         | 1048577    | 1024            | at most 1048576 is allowed; using 1024
VIRTUAL_THREADS_MAX | 1          | 64              | a multiple of 64 is needed; using 64
SAMPLE_INTERVAL     | 100ms      | 100000000       |
SAMPLE_INTERVAL     | 99         | 5000000000      | at least 100ms is needed; using 5s
SAMPLE_INTERVAL     | 0          | 5000000000      | at least 100ms is needed; using 5s
SAMPLE_INTERVAL     | 1440m      | 86400000000000  |
SAMPLE_INTERVAL     | 1441m      | 5000000000      | at most 1440m is allowed; using 5s
QUEUE               | 64KiB      | 65536           |
QUEUE               | 65535      | 16777216        | at least 64KiB is needed; using 16MiB
QUEUE               | 5          | 16777216        | at least 64KiB is needed; using 16MiB
QUEUE               | 1024GiB    | 1099511627776   |
QUEUE               | 1025GiB    | 16777216        | at most 1024GiB is allowed; using 16MiB
FLUSH_MAX           | 0          | 0               |
BLOCK_MAX           | 999999999m | 100000000       | at most 1440m is allowed; using 100ms
BLOCK_MAX           | -1         | 100000000       | expected a duration such as 100ms or 5s; using 100ms
TRACES_MAX          | 1000000000 | 1000000000      |
TRACES_MAX          | 1000000001 | 0               | at most 1000000000 is allowed; using 0
""")
    void boundsAreAcceptedAndValuesOutsideAreReported(
            String setting, String text, long counts, String expected) throws Exception {
        Setting one = Setting.valueOf(setting);
        String variable = one.variable();
        Settings settings = Settings.load(null, Map.of(variable, text));
        assertEquals(counts, settings.number(one));
        List<String> told =
                expected == null ? List.of() : List.of(variable + "=" + text + ": " + expected);
        assertEquals(told, settings.warnings());
    }

    @Test
    void theFileDoesNotReplaceAWrongVariable() throws Exception {
        Settings settings = load("buffer = 128\n", Map.of("TACHO_BUFFER", "x"));
        assertEquals(32_768, settings.count(Setting.BUFFER), "the default must apply, not the value of the file");
    }

    @Test
    void variablesForOtherPartsOfTachographGiveNoWarning() {
        Map<String, String> environment = Map.of("TACHO_AGENT_JAR", "/a.jar", "TACHO", "bin/tacho");
        assertEquals(List.of(), Settings.load(null, environment).warnings());
    }
}
