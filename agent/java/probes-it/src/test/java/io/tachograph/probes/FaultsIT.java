package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.testing.Jdks;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import shop.FaultyShop;
import shop.OddShop;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Failures of the agent are counted and logged, and do not affect the program. */
class FaultsIT {
    private static final int REQUESTS = 1_000;

    static List<Integer> jdks() {
        return Jdks.VERSIONS;
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void adviceThatThrowsIsLoggedOnceAndCountedEachTime(int jdk) throws Exception {
        String count = String.valueOf(REQUESTS);
        try (Watched shop = new Watched(jdk, FaultyShop.class, count)) {
            shop.end();
            assertTrue(shop.output().contains("served " + REQUESTS), shop.output());
            assertEquals(
                    Map.of(List.of("servlet", "JakartaServletAdvice"), (long) REQUESTS),
                    shop.samples("tacho_agent_probe_faults_total", "probe", "advice"));
            List<String> told =
                    shop.output()
                            .lines()
                            .filter(line -> line.contains("JakartaServletAdvice"))
                            .collect(Collectors.toList());
            assertEquals(1, told.size(), shop.output());
            assertTrue(
                    told.get(0)
                            .contains(
                                    "java.lang.IllegalStateException: no getDispatcherType here,"
                                            + " at shop.FaultyShop"),
                    shop.output());
            long requests =
                    shop.shapes().stream()
                            .filter(shape -> shape.startsWith("shop.FaultyShop$Front.service("))
                            .count();
            assertEquals(REQUESTS, requests, "the probe for methods must record each request");
        }
    }

    @ParameterizedTest
    @MethodSource("jdks")
    void aConstructorThatCannotBeAnalysedIsCounted(int jdk) throws Exception {
        Map<String, String> settings = Map.of("TACHO_EXCLUDE", "shop.*.main");
        try (Watched shop = new Watched(jdk, settings, OddShop.class)) {
            shop.end();
            assertTrue(shop.output().contains("made shop.Odd\nmade shop.Odd"), shop.output());
            assertTrue(shop.output().contains("cannot watch shop.Odd: "), shop.output());
            assertEquals(
                    Map.of(List.of("constructor"), 1L),
                    shop.samples("tacho_agent_unwatched_classes_total", "reason"));
        }
    }
}
