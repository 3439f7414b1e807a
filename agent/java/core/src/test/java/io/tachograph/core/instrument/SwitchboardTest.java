package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;
import io.tachograph.core.send.ProbeMailbox;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

class SwitchboardTest {
    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final AgentLog log = AgentLog.to(new PrintStream(said), false);

    private Switchboard switchboard(Map<String, String> environment, boolean methodsProbed) {
        Moves moves = new Moves(log);
        return new Switchboard(
                null, // no class is retransformed
                new Scope(log),
                new Selection(Settings.load(null, environment), moves, log),
                new WatchedClasses(new Unwatched()),
                moves,
                new ProbeMailbox(),
                new Switchboard.Patterns(0, methodsProbed),
                log);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "-",
            textBlock =
                    """
true  | include   | include: the pattern a.B fits no method of the classes loaded so far
true  | aggregate | aggregate: the pattern a.B fits no method of the classes loaded so far
true  | exclude   | -
false | include   | include has no effect: the setting probes excludes the probe "methods"
false | aggregate | aggregate has no effect: the setting probes excludes the probe "methods"
false | exclude   | -
""")
    void patternsWithoutEffectAreLoggedWithTheReason(
            boolean methodsProbed, String setting, String expected) {
        String variable = "TACHO_" + setting.toUpperCase(java.util.Locale.ROOT);
        switchboard(Map.of(variable, "a.B"), methodsProbed).end();
        assertEquals(
                expected == null ? List.of() : List.of(expected),
                said.toString()
                        .lines()
                        .map(line -> line.replaceAll("^.* tachograph: ", ""))
                        .collect(Collectors.toList()));
    }
}
