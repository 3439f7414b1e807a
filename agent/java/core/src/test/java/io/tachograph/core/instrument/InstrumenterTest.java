package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.agent.builder.AgentBuilder;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

class InstrumenterTest {
    private static final class Named implements Probe {
        private final String name;

        Named(String name) {
            this.name = name;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public AgentBuilder install(AgentBuilder builder, ProbeSetup setup) {
            return builder;
        }
    }

    private static final List<Probe> ALL =
            List.of(new Named("jdbc"), new Named("http"), new Named("methods"));

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
*            | jdbc http methods | ''
''           | ''                | ''
jdbc         | jdbc              | ''
-jdbc        | http methods      | ''
*,-jdbc      | http methods      | ''
jdbc,-jdbc   | ''                | ''
nosuch       | jdbc http methods | using *
http,nosuch  | http              | using http
-http,nosuch | jdbc methods      | using -http
""")
    void theSettingSelectsTheProbes(String setting, String selected, String said) {
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        AgentLog log = AgentLog.to(new PrintStream(lines), false);
        Settings settings = Settings.load(null, Map.of("TACHO_PROBES", setting));
        Instrumenter instrumenter = new Instrumenter(null, settings, new Moves(log), log);
        assertEquals(
                selected,
                instrumenter.wanted(ALL).stream()
                        .map(Probe::name)
                        .collect(Collectors.joining(" ")));
        assertEquals(said, lines.toString().strip().replaceFirst("^.*; ", ""));
    }
}
