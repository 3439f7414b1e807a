package io.tachograph.core.instrument;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** All current rules in order: the last rule that matches a method decides. */
final class RuleList {
    /** Increases with each list. A decision with an older epoch may be outdated. */
    final long epoch;

    /** Operations that the agent itself aggregates or switches off, independently of the rules. */
    final Moves moves;

    private final Rule[] rules;

    /**
     * @param own rules from the settings
     * @param fromServer rules from the server, which override the rules from the settings
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

    /**
     * True if a rule could match methods of the class. Called for most loaded classes, so only the
     * name is read.
     */
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
