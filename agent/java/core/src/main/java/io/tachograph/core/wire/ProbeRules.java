package io.tachograph.core.wire;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The content of PROBES: all rules of the server for this process. */
public final class ProbeRules {
    /** An empty list of rules: only the settings of the process apply. */
    public static final ProbeRules NONE = new ProbeRules(0, List.of());

    private final long revision;
    private final List<Rule> rules;

    /** A rule that is not parsed yet. */
    public static final class Rule {
        /** 0 is off, 1 recorded, 2 aggregated. Later versions may add other states. */
        public final int state;

        public final String pattern;

        public Rule(int state, String pattern) {
            this.state = state;
            this.pattern = pattern;
        }
    }

    public ProbeRules(long revision, List<Rule> rules) {
        this.revision = revision;
        this.rules = Collections.unmodifiableList(rules);
    }

    /**
     * @throws FrameReader.Damaged if a field is malformed, or if there are too many rules
     */
    public static ProbeRules read(BodyReader body) throws FrameReader.Damaged {
        long revision = body.varint();
        long count = body.varint();
        if (count < 0 || count > Wire.PROBE_RULES_MAX) {
            throw new FrameReader.Damaged(
                    "PROBES claims " + Long.toUnsignedString(count) + " rules");
        }
        List<Rule> rules = new ArrayList<>((int) count);
        for (int at = 0; at < count; at++) {
            rules.add(new Rule(body.u8(), body.string()));
        }
        return new ProbeRules(revision, rules);
    }

    public long revision() {
        return revision;
    }

    public List<Rule> rules() {
        return rules;
    }
}
