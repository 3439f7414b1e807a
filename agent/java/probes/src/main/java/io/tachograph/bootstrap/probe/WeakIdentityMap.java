package io.tachograph.bootstrap.probe;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;

/**
 * What is known about objects of the program that have no field for it. Does not keep them alive,
 * and does not call their {@code equals} or {@code hashCode}. Bounded: past the bound nothing new
 * is learned.
 */
final class WeakIdentityMap<V> {
    private final int countMax;
    private final ConcurrentHashMap<Object, V> entries = new ConcurrentHashMap<>();
    private final ReferenceQueue<Object> dead = new ReferenceQueue<>();

    WeakIdentityMap(int countMax) {
        this.countMax = countMax;
    }

    boolean isEmpty() {
        return entries.isEmpty();
    }

    /** Allocates nothing. @return null for an object that is not known */
    V get(Object object) {
        Lookup lookup = Outermost.here().lookup.of(object);
        V value = entries.get(lookup);
        lookup.of(null);
        return value;
    }

    void put(Object object, V value) {
        forgetDead();
        if (entries.size() < countMax) {
            entries.put(new Key(object, dead), value);
        }
    }

    /**
     * @return null for an object that was not known
     */
    V remove(Object object) {
        Lookup lookup = Outermost.here().lookup.of(object);
        V value = entries.remove(lookup);
        lookup.of(null);
        return value;
    }

    /**
     * Replaces the value in one step; {@code change} gets null for an object that is not known,
     * null forgets it.
     */
    void change(Object object, BiFunction<Object, V, V> change) {
        forgetDead();
        if (entries.size() < countMax || get(object) != null) {
            entries.compute(new Key(object, dead), change);
        }
    }

    private void forgetDead() {
        Reference<?> gone = dead.poll();
        while (gone != null) {
            entries.remove(gone);
            gone = dead.poll();
        }
    }

    private static final class Key extends WeakReference<Object> {
        private final int hash;

        Key(Object object, ReferenceQueue<Object> dead) {
            super(object, dead);
            this.hash = System.identityHashCode(object);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            if (this == other) {
                return true;
            }
            Object object = get();
            return object != null && other instanceof Key && ((Key) other).get() == object;
        }
    }

    /** Stands for an object while it is looked up; one a thread. */
    static final class Lookup {
        private Object object;

        Lookup of(Object wanted) {
            object = wanted;
            return this;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(object);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).get() == object;
        }
    }
}
