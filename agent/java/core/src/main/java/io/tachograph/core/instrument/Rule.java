package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;
import io.tachograph.core.log.Messages;

import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.annotation.AnnotationSource;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

/**
 * A pattern, and the state of the methods that match it. A later rule that matches a method
 * overrides this one.
 */
final class Rule {
    final State state;
    final String text;

    /** Reason why the rule is invalid; empty if it is valid. */
    final String fault;

    /** True for a rule of the server, false for a setting of this process. */
    final boolean fromServer;

    /** Time of arrival, {@code System.nanoTime()}; {@link #OWN} for a setting of this process. */
    final long since;

    private final Pattern pattern;

    private static final long OWN = Long.MIN_VALUE;

    private Rule(State state, String text, Pattern pattern, String fault, long since) {
        this.state = state;
        this.text = text;
        this.pattern = pattern;
        this.fault = fault;
        this.since = since;
        this.fromServer = since != OWN;
    }

    static Rule own(State state, String text) {
        return parse(state, text, OWN);
    }

    /**
     * @param state as in PROBES; an unknown number makes the rule invalid
     * @param since time of arrival, {@code System.nanoTime()}
     */
    static Rule ofServer(int state, String text, long since) {
        State[] states = State.values();
        if (state < 0 || state >= states.length) {
            return new Rule(State.OFF, text, null, Messages.ruleStateUnknown(state), since);
        }
        return parse(states[state], text, since);
    }

    private static Rule parse(State state, String text, long since) {
        try {
            return new Rule(state, text, Pattern.parse(text), "", since);
        } catch (IllegalArgumentException e) {
            return new Rule(state, text, null, e.getMessage(), since);
        }
    }

    /** The setting that contains this rule. Must not be called for a rule of the server. */
    Setting setting() {
        switch (state) {
            case OFF:
                return Setting.EXCLUDE;
            case AGGREGATE:
                return Setting.AGGREGATE;
            default:
                return Setting.INCLUDE;
        }
    }

    boolean isFaulty() {
        return pattern == null;
    }

    boolean isEverything() {
        return pattern != null && pattern.isEverything();
    }

    /** True if the rule could match methods of this class. Called for most loaded classes. */
    boolean mayConcern(String className) {
        return pattern != null
                && (pattern.isAnnotation()
                        || pattern.fits(className)
                        || pattern.mayFitMethodsOf(className));
    }

    /** True if the rule matches the method. {@link #mayConcern} must be true for its class. */
    boolean fits(TypeDescription type, MethodDescription method) {
        if (pattern.isAnnotation()) {
            return isAnnotated(type) || isAnnotated(method);
        }
        return pattern.fits(type.getName())
                || pattern.fits(type.getName(), method.getInternalName());
    }

    private boolean isAnnotated(AnnotationSource source) {
        for (AnnotationDescription annotation : source.getDeclaredAnnotations()) {
            if (pattern.fits(annotation.getAnnotationType().getName())) {
                return true;
            }
        }
        return false;
    }

    boolean saysTheSameAs(Rule other) {
        return state == other.state && text.equals(other.text);
    }

    @Override
    public String toString() {
        return state.word + " " + text;
    }
}
