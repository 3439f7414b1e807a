package io.tachograph.core.instrument;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * The decisions for the loaded classes that rules may match. This table does not keep class loaders
 * in memory. Decisions are written when classes are loaded or rules change; the switchboard reads
 * them.
 */
final class WatchedClasses {
    private static final Object BOOTSTRAP = new Object();

    private final Map<Object, Map<String, Decision>> decisions = new WeakHashMap<>();
    private final Map<Object, Set<String>> unchangeable = new WeakHashMap<>();
    private final Unwatched unwatched;
    private volatile Runnable listener = () -> {};

    WatchedClasses(Unwatched unwatched) {
        this.unwatched = unwatched;
    }

    static final class Totals {
        long recorded;
        long aggregated;
        long off;
        long classes;

        /** Number of methods that each rule of the list decides. */
        final long[] decides;

        /** Number of methods that each rule of the list matches. */
        final long[] fits;

        Totals(int rules) {
            decides = new long[rules];
            fits = new long[rules];
        }
    }

    private static Object key(ClassLoader loader) {
        return loader == null ? BOOTSTRAP : loader;
    }

    /**
     * Sets the listener, which runs each time that a decision is stored. It runs on a thread that
     * loads a class, or on the thread of the switchboard.
     */
    void listen(Runnable toPut) {
        listener = toPut;
    }

    /**
     * Stores the decision that the byte code of the class follows, now or at the end of the running
     * transformation. If no rule may match the class and no method is instrumented, removes the
     * stored decision instead.
     */
    void put(ClassLoader loader, String name, Decision decision) {
        boolean concerns = !decision.concernsNobody();
        synchronized (this) {
            Map<String, Decision> ofLoader =
                    decisions.computeIfAbsent(key(loader), missing -> new HashMap<>());
            if (concerns) {
                ofLoader.put(name, decision.kept());
            } else {
                ofLoader.remove(name);
            }
        }
        if (concerns) {
            listener.run();
        }
    }

    /** Null if no decision is stored. */
    synchronized Decision get(ClassLoader loader, String name) {
        return decisions.getOrDefault(key(loader), Collections.emptyMap()).get(name);
    }

    /**
     * Counts a class that cannot be changed. The agent does not try to change it again.
     *
     * @param asItIs decision that the byte code of the class follows; may be null
     */
    synchronized void giveUp(ClassLoader loader, String name, Decision asItIs, Object why) {
        if (unchangeable.computeIfAbsent(key(loader), missing -> new HashSet<>()).add(name)) {
            unwatched.count(why);
        }
        Decision decision = get(loader, name);
        if (decision != null) {
            put(loader, name, decision.on(asItIs));
        }
    }

    synchronized boolean isUnchangeable(ClassLoader loader, String name) {
        return unchangeable.getOrDefault(key(loader), Collections.emptySet()).contains(name);
    }

    /** Decisions of older lists are excluded, because their counts belong to other rules. */
    synchronized Totals totals(RuleList list) {
        Totals totals = new Totals(list.size());
        for (Map<String, Decision> ofLoader : decisions.values()) {
            for (Decision decision : ofLoader.values()) {
                if (decision.epoch == list.epoch) {
                    add(totals, decision);
                }
            }
        }
        return totals;
    }

    private static void add(Totals totals, Decision decision) {
        totals.classes++;
        totals.recorded += decision.recorded();
        totals.aggregated += decision.aggregated();
        totals.off += decision.off();
        for (int at = 0; at < decision.rules.length; at++) {
            totals.decides[decision.rules[at]] += decision.decides[at];
            totals.fits[decision.rules[at]] += decision.fits[at];
        }
    }
}
