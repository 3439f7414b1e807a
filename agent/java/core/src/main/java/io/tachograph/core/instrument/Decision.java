package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The decision of a {@link RuleList} for the methods of one class. */
final class Decision {
    private static final int[] NOTHING = {};

    /** The annotation on classes that the processor in {@code agent/java/api} generates. */
    private static final String RECORD_WRITER = "io.tachograph.api.Generated";

    /** The {@link RuleList#epoch} of the rules with which the decision was made. */
    final long epoch;

    /** Positions of the rules that may match methods of the class. */
    final int[] rules;

    /** Number of methods that each of those rules decides. */
    final int[] decides;

    /** Number of methods that each of those rules matches. */
    final int[] fits;

    /**
     * Operations of the instrumented methods, sorted. Each element is twice the operation's id,
     * plus one if the operation is aggregated.
     */
    private int[] watched = NOTHING;

    /** Number of methods that a rule of the server or the overhead budget switches off. */
    private int off;

    /**
     * State of each instrumented method, by name and descriptor. Null in a copy that {@link #kept}
     * returned.
     */
    private Map<String, State> states;

    private Decision(long epoch, int[] rules, int[] decides, int[] fits) {
        this.epoch = epoch;
        this.rules = rules;
        this.decides = decides;
        this.fits = fits;
    }

    static Decision of(RuleList list, TypeDescription type) {
        int[] rules = list.concerning(type.getName());
        Decision decision =
                new Decision(list.epoch, rules, new int[rules.length], new int[rules.length]);
        decision.states = new HashMap<>();
        if (rules.length > 0 && !writesRecords(type)) {
            for (MethodDescription method : type.getDeclaredMethods()) {
                if (isWatchable(method)) {
                    decision.decide(list, type, method);
                }
            }
            Arrays.sort(decision.watched);
        }
        return decision;
    }

    /**
     * True for a generated record writer. Its methods are not instrumented, because a record must
     * belong to the call of the program that writes the record.
     */
    private static boolean writesRecords(TypeDescription type) {
        for (AnnotationDescription annotation : type.getDeclaredAnnotations()) {
            if (annotation.getAnnotationType().getName().equals(RECORD_WRITER)) {
                return true;
            }
        }
        return false;
    }

    /**
     * False for methods without byte code, for static initialisers, and for methods that the
     * compiler generates (bridges, bodies of lambdas, accessors). Generated methods are part of a
     * method in the source, not separate calls.
     */
    private static boolean isWatchable(MethodDescription method) {
        return !method.isAbstract()
                && !method.isNative()
                && !method.isSynthetic()
                && !method.isBridge()
                && !method.isTypeInitializer();
    }

    private void decide(RuleList list, TypeDescription type, MethodDescription method) {
        int last = -1;
        for (int at = 0; at < rules.length; at++) {
            if (list.rule(rules[at]).fits(type, method)) {
                fits[at]++;
                last = at;
            }
        }
        if (last < 0) {
            return;
        }
        decides[last]++;
        Rule rule = list.rule(rules[last]);
        if (rule.state == State.OFF) {
            off += rule.fromServer ? 1 : 0;
            return;
        }
        int operation = Recorder.operation(Operations.METHOD, OperationName.of(type, method));
        State state = list.moves.state(rule, operation);
        if (state == State.OFF) {
            off++;
            return;
        }
        watched = Arrays.copyOf(watched, watched.length + 1);
        watched[watched.length - 1] = 2 * operation + (state == State.AGGREGATE ? 1 : 0);
        states.put(key(method), state);
    }

    private static String key(MethodDescription method) {
        return method.getInternalName() + method.getDescriptor();
    }

    State of(MethodDescription method) {
        return states.getOrDefault(key(method), State.OFF);
    }

    boolean watchesNothing() {
        return watched.length == 0;
    }

    /** True if {@link WatchedClasses} need not store the decision. */
    boolean concernsNobody() {
        return rules.length == 0 && watched.length == 0;
    }

    boolean watchesTheSameAs(Decision other) {
        return Arrays.equals(watched, other.watched);
    }

    int recorded() {
        return watched.length - aggregated();
    }

    int aggregated() {
        int count = 0;
        for (int entry : watched) {
            count += entry & 1;
        }
        return count;
    }

    int off() {
        return off;
    }

    /** A copy without the names of the methods, to store for each class. */
    Decision kept() {
        Decision kept = new Decision(epoch, rules, decides, fits);
        kept.watched = watched;
        kept.off = off;
        return kept;
    }

    /**
     * Combines two decisions for a class whose byte code cannot be changed and still follows {@code
     * before}. The result has the rules' counts of this decision, and the instrumented methods of
     * {@code before}, or none if {@code before} is null.
     */
    Decision on(Decision before) {
        Decision kept = kept();
        kept.watched = before == null ? NOTHING : before.watched;
        return kept;
    }
}
