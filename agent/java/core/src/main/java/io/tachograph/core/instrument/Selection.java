package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.description.type.TypeDescription;

import java.util.ArrayList;
import java.util.List;

/**
 * Selects the methods to instrument. The settings {@code include}, {@code aggregate} and
 * {@code exclude}, followed by the rules of the server, are one list of rules.
 */
public final class Selection {
    private final List<Rule> own = new ArrayList<>();
    private final Moves moves;
    private volatile RuleList list;

    public Selection(Settings settings, Moves moves, AgentLog log) {
        this.moves = moves;
        add(State.RECORD, settings.list(Setting.INCLUDE), log);
        add(State.AGGREGATE, settings.list(Setting.AGGREGATE), log);
        // last, so that exclude overrides include and aggregate
        add(State.OFF, settings.list(Setting.EXCLUDE), log);
        list = new RuleList(0, own, List.of(), moves);
    }

    private void add(State state, List<String> texts, AgentLog log) {
        for (String text : texts) {
            Rule rule = Rule.own(state, text);
            if (rule.isFaulty()) {
                log.say(rule.fault + "; it is ignored");
            } else {
                own.add(rule);
            }
        }
    }

    /** True if neither {@code include} nor {@code aggregate} has a valid pattern. */
    boolean isEmpty() {
        return own.stream().allMatch(rule -> rule.state == State.OFF);
    }

    RuleList list() {
        return list;
    }

    /** Number of rules from the settings. In {@link #list}, they come first. */
    int ownCount() {
        return own.size();
    }

    /** Must always be called by the same thread. */
    RuleList replace(List<Rule> fromServer) {
        list = new RuleList(list.epoch + 1, own, fromServer, moves);
        return list;
    }

    Decision decide(TypeDescription type) {
        return Decision.of(list, type);
    }
}
