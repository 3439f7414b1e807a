package io.tachograph.core.instrument;

import io.tachograph.core.config.Setting;

import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.annotation.AnnotationSource;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

/** One state for the methods that a pattern fits, unless a later rule that fits says otherwise. */
final class Rule {
    final State state;
    final String text;

    /** Why it cannot be followed; empty if it can. */
    final String fault;

    /** It came from the server, not from the settings of this process. */
    final boolean fromServer;

    /** When it came, {@code System.nanoTime()}. */
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

    /** From a setting of this process. */
    static Rule own(State state, String text) {
        return parse(state, text, OWN);
    }

    /**
     * From the server.
     *
     * @param state as in PROBES; a number that is not known is a fault of the rule
     * @param since {@code System.nanoTime()}
     */
    static Rule ofServer(int state, String text, long since) {
        State[] states = State.values();
        if (state < 0 || state >= states.length) {
            return new Rule(State.OFF, text, null, "state " + state + " is not known here", since);
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

    /** The setting that a rule of this process comes from. */
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

    /** It fits whatever there is. */
    boolean isEverything() {
        return pattern != null && pattern.isEverything();
    }

    /** Could it fit methods of this class? Asked for every class that is loaded. */
    boolean mayConcern(String className) {
        return pattern != null
                && (pattern.isAnnotation()
                        || pattern.fits(className)
                        || pattern.mayFitMethodsOf(className));
    }

    /** For a method of a class that it {@link #mayConcern}. */
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
