package io.tachograph.core.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** PROBES and PROBED match the vectors of the Rust tests. */
class ProbeFramesTest {
    private static Vectors.Case vector(String name) throws Exception {
        return Vectors.read("probes.vec").get(name);
    }

    private static List<String> all(Vectors.Case given, String key) {
        return given.keys().stream()
                .filter(entry -> entry.getKey().equals(key))
                .map(Map.Entry::getValue)
                .collect(Collectors.toList());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"probes-none", "probes-one", "probes-every-state", "probes-last-revision"})
    void rulesMatchTheVectors(String name) throws Exception {
        Vectors.Case given = vector(name);
        FrameReader frames = new FrameReader();
        frames.push(ByteBuffer.wrap(given.frame()));
        assertTrue(frames.next());
        assertEquals(Wire.PROBES, frames.type());
        ProbeRules rules = ProbeRules.read(frames.body());
        assertEquals(given.number("revision"), rules.revision());
        List<String> got = new ArrayList<>();
        rules.rules().forEach(rule -> got.add(rule.state + " " + rule.pattern));
        assertEquals(all(given, "rule"), got);
    }

    @ParameterizedTest
    @ValueSource(strings = {"probed-without-rules", "probed-rules", "probed-moved"})
    void reportsMatchTheVectors(String name) throws Exception {
        Vectors.Case expected = vector(name);
        ProbeReport report = new ProbeReport();
        report.revision = expected.number("revision");
        report.on = expected.number("on");
        report.aggregated = expected.number("aggregated");
        report.off = expected.number("off");
        for (String rule : all(expected, "rule")) {
            String[] words = rule.split(" ", 3);
            report.rule(Long.parseLong(words[1]), words.length < 3 ? "" : words[2]);
        }
        List<String> moved = all(expected, "moved");
        for (int at = 0; at < moved.size(); at++) {
            report.moved(
                    moved.get(at),
                    all(expected, "reason").get(at),
                    Long.parseLong(all(expected, "since").get(at)));
        }
        assertEquals(
                HexFormat.of().formatHex(expected.frame()),
                HexFormat.of().formatHex(report.frame()));
    }

    @Test
    void reportsAreBounded() throws Exception {
        ProbeReport report = new ProbeReport();
        for (int at = 0; at < 300; at++) {
            report.rule(1, "x".repeat(10_000)).moved("y".repeat(10_000), "z", at);
        }
        assertTrue(report.frame().length < 300 * 530 + 256 * 530);
    }

    /** Bodies that end inside each of the fields, and a body with 1,001 rules. */
    @ParameterizedTest
    @ValueSource(strings = {"", "01", "0101", "010100", "01010005", "01e907"})
    void invalidRulesAreRefused(String hex) {
        BodyReader body = new BodyReader(HexFormat.of().parseHex(hex));
        assertThrows(FrameReader.Damaged.class, () -> ProbeRules.read(body));
    }
}
