package io.tachograph.core.instrument;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** All rules that hold at one time, in order: of those that fit a method the last one decides. */
final class RuleList {
    /** Rises with each list: what was decided by an older one may be out of date. */
    final long epoch;

    /** What the agent aggregates of itself, whatever the rules say. */
    final Moves moves;

    private final Rule[] rules;

    /**
     * @param own from the settings; they come first
     * @param fromServer lie above
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

    /** Asked for every class that is loaded, so it looks at the name only. */
    boolean mayConcern(String className) {
        for (Rule rule : rules) {
            if (rule.mayConcern(className)) {
                return true;
            }
        }
        return false;
    }

    /** Positions of the rules that may fit methods of a class. */
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
