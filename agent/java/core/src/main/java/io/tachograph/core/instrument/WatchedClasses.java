package io.tachograph.core.instrument;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * What was decided for the classes that are loaded, as far as a rule concerns them. Keeps no class
 * loader alive. Written where classes are loaded and retransformed, read by the switchboard.
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

    /** Sums over all classes. */
    static final class Totals {
        long recorded;
        long aggregated;
        long off;
        long classes;

        /** For each rule of the list. */
        final long[] decides;

        final long[] fits;

        Totals(int rules) {
            decides = new long[rules];
            fits = new long[rules];
        }
    }

    private static Object key(ClassLoader loader) {
        return loader == null ? BOOTSTRAP : loader;
    }

    /** Who is told when there may be other sums: on the thread that loads the class. */
    void listen(Runnable toPut) {
        listener = toPut;
    }

    /** The class now is, or is about to be, as the decision says. */
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

    /** Null if no rule concerned the class so far. */
    synchronized Decision get(ClassLoader loader, String name) {
        return decisions.getOrDefault(key(loader), Collections.emptyMap()).get(name);
    }

    /** The class cannot be changed: it stays as it is, is counted, and is not tried again. */
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

    /** Decisions of older lists are left out: their counts belong to other rules. */
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
