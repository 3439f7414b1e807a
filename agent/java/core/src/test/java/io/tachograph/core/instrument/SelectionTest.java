package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.description.type.TypeDescription;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Rules from the settings and from the server: the last rule that matches a method decides. */
class SelectionTest {
    @Retention
    static class Board {
        void post() {}

        int getCount() {
            return 0;
        }

        @Hot
        void step() {}
    }

    @java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy.RUNTIME)
    @interface Hot {}

    @java.lang.annotation.Retention(java.lang.annotation.RetentionPolicy.RUNTIME)
    @interface Retention {}

    private static final String HERE = "io.tachograph.core.instrument.SelectionTest";
    private static final TypeDescription BOARD = TypeDescription.ForLoadedType.of(Board.class);

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final AgentLog log = AgentLog.to(new PrintStream(said), false);

    private Selection selection(String include, String exclude, String rules) {
        Settings settings =
                Settings.load(
                        null,
                        Map.of("TACHO_INCLUDE", text(include), "TACHO_EXCLUDE", text(exclude)));
        Selection selection = new Selection(settings, new Moves(log), log);
        List<Rule> parsed = new ArrayList<>();
        for (String rule : text(rules).split(",")) {
            if (!rule.isBlank()) {
                String[] words = rule.trim().split(" ", 2);
                parsed.add(Rule.ofServer(Integer.parseInt(words[0]), words[1], 1));
            }
        }
        selection.replace(parsed);
        return selection;
    }

    private static String text(String pattern) {
        return pattern == null ? "" : pattern.replace("HERE", HERE);
    }

    private static String watched(Decision decision) {
        return BOARD.getDeclaredMethods().stream()
                .filter(method -> decision.of(method) != State.OFF)
                .map(method -> method.getInternalName())
                .sorted()
                .collect(Collectors.joining(" "));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // include | exclude | rules of the server | instrumented methods
                "          |                 |                            | ''",
                "HERE$*    |                 |                            | <init> getCount post"
                        + " step",
                "HERE$*    | HERE$*.get*     |                            | <init> post step",
                "HERE$Board.post |           |                            | post",
                "@HERE$Hot |                 |                            | step",
                "@HERE$Retention | @HERE$Hot |                            | <init> getCount post",
                "HERE$*    |                 | 0 *                        | ''",
                "HERE$*    |                 | 0 *, 1 HERE$Board.post     | post",
                "HERE$*    |                 | 1 HERE$Board.post, 0 ..*   | ''",
                "          |                 | 1 HERE..*                  | ''",
                "          |                 | 1 io.tachograph.core..*    | <init> getCount post"
                        + " step",
                "HERE$*    | HERE$*.get*     | 1 HERE$Board.getCount      | <init> getCount post"
                        + " step",
                "HERE$*    |                 | 0 @HERE$Hot                | <init> getCount post",
                "HERE$*    |                 | 0 not a pattern, 9 *       | <init> getCount post"
                        + " step",
            })
    void theLastMatchingRuleDecides(String include, String exclude, String rules, String expected) {
        Selection selection = selection(include, exclude, rules);
        Decision decision = selection.decide(BOARD);
        assertEquals(expected, watched(decision));
        assertEquals(expected.isEmpty(), decision.watchesNothing());
        assertEquals("", said.toString());
    }

    @Test
    void matchesAndDecisionsOfEachRuleAreCounted() {
        Selection selection =
                selection("HERE$*", "HERE$*.get*", "0 HERE$Board.post, 1 nowhere..*, 1 @HERE$Hot");
        WatchedClasses watched = new WatchedClasses(new Unwatched());
        watched.put(null, BOARD.getName(), selection.decide(BOARD));
        WatchedClasses.Totals totals = watched.totals(selection.list());
        assertArrayEquals(new long[] {4, 1, 1, 0, 1}, totals.fits);
        assertArrayEquals(new long[] {1, 1, 1, 0, 1}, totals.decides);
        assertEquals(2, totals.recorded);
        assertEquals(1, totals.off, "methods that are off because of the setting exclude must not be counted");
        WatchedClasses.Totals later = watched.totals(selection.replace(List.of()));
        assertEquals(0, later.classes, "decisions of older rules must not be counted");
    }

    @Test
    void classesThatARuleMatchesAreReported() {
        Selection selection = selection("HERE$*", "", "");
        WatchedClasses watched = new WatchedClasses(new Unwatched());
        watched.put(null, BOARD.getName(), selection.decide(BOARD));
        int[] told = new int[1];
        watched.listen(() -> told[0]++);
        watched.put(
                null,
                "java.lang.Object",
                selection.decide(TypeDescription.ForLoadedType.of(Object.class)));
        assertEquals(0, told[0]);
        watched.put(null, BOARD.getName(), selection.decide(BOARD));
        assertEquals(1, told[0]);
    }

    @Test
    void aClassThatCannotBeChangedHasNoRecordedMethods() {
        Selection selection = selection("HERE$*", "", "");
        WatchedClasses watched = new WatchedClasses(new Unwatched());
        ClassLoader loader = getClass().getClassLoader();
        watched.put(loader, BOARD.getName(), selection.decide(BOARD));
        watched.giveUp(loader, BOARD.getName(), null, "a test");
        assertTrue(watched.isUnchangeable(loader, BOARD.getName()));
        assertEquals(0, watched.totals(selection.list()).recorded);
        assertEquals(4, watched.totals(selection.list()).fits[0]);
        assertNull(watched.get(null, BOARD.getName()));
    }

    @Test
    void invalidPatternsOfTheSettingsAreLogged() {
        Selection selection = selection("no pattern,HERE$*", "", "");
        assertEquals(1, selection.ownCount());
        assertTrue(said.toString().contains("no pattern"), said.toString());
    }
}
