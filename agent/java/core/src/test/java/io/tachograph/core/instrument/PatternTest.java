package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

class PatternTest {
    private static final Path DECISIONS = Path.of("../../../testdata/rules/decisions.vec");

    /** The name of each case and its lines. */
    static Stream<Arguments> decisions() throws IOException {
        return Arrays.stream(Files.readString(DECISIONS).split("\n\n"))
                .map(block -> block.lines().filter(line -> !line.startsWith("#")).toList())
                .filter(lines -> !lines.isEmpty())
                .map(lines -> Arguments.of(lines.get(0), lines));
    }

    private static List<String> all(List<String> lines, String key) {
        return lines.stream()
                .filter(line -> line.startsWith(key + " = "))
                .map(line -> line.substring(key.length() + 3))
                .collect(Collectors.toList());
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("decisions")
    void casesAreDecidedAsInTheTable(String name, List<String> lines) {
        List<Rule> rules =
                all(lines, "rule").stream()
                        .map(rule -> Rule.ofServer(rule.charAt(0) - '0', rule.substring(2), 0))
                        .collect(Collectors.toList());
        List<String> faulty =
                IntStream.range(0, rules.size())
                        .filter(at -> rules.get(at).isFaulty())
                        .mapToObj(String::valueOf)
                        .collect(Collectors.toList());
        assertEquals(all(lines, "fault"), faulty);
        for (String line : all(lines, "method")) {
            String[] words = line.split(" ");
            assertEquals(words[2], decider(rules, words[0], words[1]), line);
        }
    }

    private static String decider(List<Rule> rules, String type, String method) {
        for (int at = rules.size() - 1; at >= 0; at--) {
            if (!rules.get(at).isFaulty()) {
                Pattern pattern = Pattern.parse(rules.get(at).text);
                if (pattern.fits(type) || pattern.fits(type, method)) {
                    return String.valueOf(at);
                }
            }
        }
        return "-";
    }

    @ParameterizedTest
    @CsvSource({
        "com.shop..*, com.shop.Board, true",
        "com.shop..*, com.shop.deep.er.Board, true",
        "com.shop..*, com.shop.Board$Entry, true",
        "com.shop..*, com.shopping.Board, false",
        "com.shop..*, com.shop, false",
        "com.shop.*, com.shop.Board, true",
        "com.shop.*, com.shop.deep.Board, false",
        "com.shop.Board, com.shop.Board, true",
        "com.shop.Board, com.shop.Board2, false",
        "com.shop.Board, com.shop.Board.post, false",
        "com.shop.Board.post, com.shop.Board.post, true",
        "com.shop.Board.p*t, com.shop.Board.print, true",
        "com.shop.Board.<init>, com.shop.Board.<init>, true",
        "com.shop..*Service.find*, com.shop.a.b.UserService.findAll, true",
        "com.shop..*Service.find*, com.shop.UserService.findAll, true",
        "com.shop..*Service.find*, com.shop.UserServices.findAll, false",
        "..*Service, a.b.UserService, true",
        "..*Service, UserService, true",
        "..Board.*, com.shop.Board.post, true",
        "*, Main, true",
        "*, a.Main, true",
        "..*, a.Main, true",
        "com..shop..*, com.a.shop.b.Main, true",
        "com..shop..*, com.shop.Main, true",
        "com.größe.漢*, com.größe.漢字, true",
    })
    void patternsMatchWholeNames(String pattern, String name, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).fits(name));
    }

    @ParameterizedTest
    @CsvSource({
        "com.shop.Board.post, com.shop.Board, true",
        "com.shop.Board.post, com.shop.Other, false",
        "com.shop..*Service.find*, com.shop.x.UserService, true",
        "com.shop..*, com.shop, false",
        "com.shop..get*, com.shop.Board, false",
    })
    void patternsMayMatchMethodsOfAClass(String pattern, String type, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).mayFitMethodsOf(type));
    }

    @ParameterizedTest
    @CsvSource({
        "com.shop..*.get*, com.shop.Board, getName, true",
        "com.shop..*.get*, com.shop.Board, setName, false",
        "com.shop.Board.<init>, com.shop.Board, <init>, true",
        "..*Service, com.shop.Board, someService, false",
        "com.shop.Board, com.shop, Board, true",
    })
    void patternsMatchMethods(String pattern, String type, String method, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).fits(type, method));
    }

    @ParameterizedTest
    @CsvSource({
        "*, true",
        "..*, true",
        "..*.*, true",
        "com..*, false",
        "com.shop..*, false",
        "..*.get*, false",
        "@..*, false",
    })
    void patternsThatMatchEverythingAreRecognised(String pattern, boolean expected) {
        assertEquals(expected, Pattern.parse(pattern).isEverything());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "@",
                "com.shop.",
                ".com",
                "com...shop",
                "com shop",
                "com/shop/*",
                "com.shop.Board(int)"
            })
    void invalidPatternsAreRefused(String pattern) {
        assertThrows(IllegalArgumentException.class, () -> Pattern.parse(pattern));
    }
}
