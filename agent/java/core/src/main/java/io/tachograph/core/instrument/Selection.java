package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;
import io.tachograph.core.config.Settings;
import io.tachograph.core.log.AgentLog;

import net.bytebuddy.description.type.TypeDescription;

import java.util.ArrayList;
import java.util.List;

/**
 * Which methods are watched, and how: what {@code include} names, what {@code aggregate} names,
 * less what {@code exclude} names, then what the server says. One list of rules, of which it can be
 * seen what each does.
 */
public final class Selection {
    private final List<Rule> own = new ArrayList<>();
    private final Moves moves;
    private volatile RuleList list;

    public Selection(Settings settings, Moves moves, AgentLog log) {
        this.moves = moves;
        add(State.RECORD, settings.list(Setting.INCLUDE), log);
        add(State.AGGREGATE, settings.list(Setting.AGGREGATE), log);
        add(State.OFF, settings.list(Setting.EXCLUDE), log); // last: it wins over the others
        list = new RuleList(0, own, List.of(), moves);
    }

    private void add(State state, List<String> texts, AgentLog log) {
        for (String text : texts) {
            Rule rule = Rule.own(state, text);
            if (rule.isFaulty()) {
                log.say(rule.fault + "; it is left out");
            } else {
                own.add(rule);
            }
        }
    }

    /** Nothing is watched as long as the server does not ask for it. */
    boolean isEmpty() {
        return own.stream().allMatch(rule -> rule.state == State.OFF);
    }

    RuleList list() {
        return list;
    }

    /** How many rules of {@link #list} are those of the settings. */
    int ownCount() {
        return own.size();
    }

    /** From now on classes are decided by these rules, too. Called by one thread only. */
    RuleList replace(List<Rule> fromServer) {
        list = new RuleList(list.epoch + 1, own, fromServer, moves);
        return list;
    }

    Decision decide(TypeDescription type) {
        return Decision.of(list, type);
    }
}
