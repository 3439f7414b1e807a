package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** What a {@link RuleList} decides for the methods of one class. */
final class Decision {
    private static final int[] NOTHING = {};

    /** On classes that the annotation processor of {@code agent/java/api} makes. */
    private static final String RECORD_WRITER = "io.tachograph.api.Generated";

    /** {@link RuleList#epoch} of the rules that decided. */
    final long epoch;

    /** Positions of the rules that concern the class. */
    final int[] rules;

    /** How many methods each of those decides, and how many it fits. */
    final int[] decides;

    final int[] fits;

    /** Operations of the methods that are watched, times two, plus one if aggregated; sorted. */
    private int[] watched = NOTHING;

    /** Methods that a rule of the server switches off. */
    private int off;

    /** By name and descriptor; methods that are not watched are not in it. Null in what is kept. */
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

    /** A record belongs to the call that wrote it, not to one of the code that writes it. */
    private static boolean writesRecords(TypeDescription type) {
        for (AnnotationDescription annotation : type.getDeclaredAnnotations()) {
            if (annotation.getAnnotationType().getName().equals(RECORD_WRITER)) {
                return true;
            }
        }
        return false;
    }

    /**
     * What the compiler made (bridges, bodies of lambdas, accessors) is part of what the person
     * wrote, not a call of its own.
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
        State state = list.moves.holdsAgainst(rule, operation) ? State.AGGREGATE : rule.state;
        watched = Arrays.copyOf(watched, watched.length + 1);
        watched[watched.length - 1] = 2 * operation + (state == State.AGGREGATE ? 1 : 0);
        states.put(key(method), state);
    }

    private static String key(MethodDescription method) {
        return method.getInternalName() + method.getDescriptor();
    }

    /** State of a method of the class that this was made for. */
    State of(MethodDescription method) {
        return states.getOrDefault(key(method), State.OFF);
    }

    boolean watchesNothing() {
        return watched.length == 0;
    }

    /** Nobody needs to remember it. */
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

    /** Without the names of the methods: what is remembered for each class. */
    Decision kept() {
        Decision kept = new Decision(epoch, rules, decides, fits);
        kept.watched = watched;
        kept.off = off;
        return kept;
    }

    /** The counts of this decision, on a class that is still as {@code before} has it. */
    Decision on(Decision before) {
        Decision kept = kept();
        kept.watched = before == null ? NOTHING : before.watched;
        return kept;
    }
}
