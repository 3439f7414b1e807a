package io.tachograph.core.instrument;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** All current rules in order: the last rule that matches a method decides. */
final class RuleList {
    /** Increases with each list: decisions of an older list may be outdated. */
    final long epoch;

    /** Operations that the agent itself aggregates, whatever the rules say. */
    final Moves moves;

    private final Rule[] rules;

    /**
     * @param own rules of the settings; they come first
     * @param fromServer rules of the server, which override them
     */
    RuleList(long epoch, List<Rule> own, List<Rule> fromServer, Moves moves) {
        this.epoch = epoch;
        this.moves = moves;
        List<Rule> all = new ArrayList<>(own);
        all.addAll(fromServer);
        this.rules = all.toArray(new Rule[0]);
    }

    int size() {
        return rules.length;
    }

    Rule rule(int at) {
        return rules[at];
    }

    List<Rule> all() {
        return Arrays.asList(rules);
    }

    /** Called for every loaded class, so it reads only the name. */
    boolean mayConcern(String className) {
        for (Rule rule : rules) {
            if (rule.mayConcern(className)) {
                return true;
            }
        }
        return false;
    }

    /** Positions of the rules that may match methods of a class. */
    int[] concerning(String className) {
        int[] found = new int[4];
        int count = 0;
        for (int at = 0; at < rules.length; at++) {
            if (rules[at].mayConcern(className)) {
                if (count == found.length) {
                    found = Arrays.copyOf(found, count * 2);
                }
                found[count++] = at;
            }
        }
        return Arrays.copyOf(found, count);
    }
}
