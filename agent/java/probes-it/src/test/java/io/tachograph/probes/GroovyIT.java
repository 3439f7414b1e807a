package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.GroovyShop;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Constructors in which several branches call {@code super(...)}. */
class GroovyIT {
    private static final String OLD =
            System.getProperty("other.libraries") + "/groovy2/groovy-all-2.4.21.jar";

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void constructorsWithSeveralBranchesAreRecorded(int jdk) throws Exception {
        Map<String, String> settings =
                Map.of(
                        "TACHO_INCLUDE",
                        "shop.made.*.<init>,groovy.cli.*.<init>,groovy.inspect..*.<init>,"
                                + "org.codehaus.groovy.control.customizers..*.<init>,"
                                + "org.codehaus.groovy.tools..*.<init>,"
                                + "org.codehaus.groovy.transform..*.<init>",
                        "TACHO_EXCLUDE",
                        "");
        try (Watched shop = new Watched(jdk, settings, GroovyShop.class, OLD)) {
            shop.end();
            String printed = shop.output();
            assertEquals(
                    List.of(
                            "said no stock",
                            "made text x 42",
                            "made number 7 42",
                            "made other 42",
                            "made nothing, java.lang.IllegalArgumentException: negative"),
                    printed.lines()
                            .filter(line -> line.startsWith("said") || line.startsWith("made"))
                            .collect(Collectors.toList()),
                    printed);
            assertEquals(
                    5, printed.lines().filter(line -> line.startsWith("verified")).count(), printed);
            assertFalse(printed.contains("cannot watch"), printed);
            shop.root("groovy.cli.CliBuilderException.<init>(String)");
            String above = "shop.made.Above.<init>";
            String below = "shop.made.Below.<init>(Object, int)";
            assertEquals(
                    List.of(
                            above + "(String)",
                            below,
                            "shop.made.Below.<init>(Object)",
                            above + "(Integer)",
                            below,
                            "shop.made.Below.<init>(Object)",
                            above + "(Object)",
                            below,
                            "shop.made.Below.<init>(Object)",
                            above + "(String)",
                            below + "!"),
                    shop.shapes().stream()
                            .filter(shape -> shape.startsWith("shop.made"))
                            .collect(Collectors.toList()));
        }
    }
}
