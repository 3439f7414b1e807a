package io.tachograph.bootstrap.probe;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;

/**
 * Attaches values to objects of the program without adding a field to them. References to the
 * objects are weak, and their {@code equals} and {@code hashCode} are not called. The size is
 * bounded: past the bound no entry is added.
 */
class WeakIdentityMap<V> {
    private final int countMax;
    private final ConcurrentHashMap<Object, V> entries = new ConcurrentHashMap<>();
    private final ReferenceQueue<Object> dead = new ReferenceQueue<>();

    WeakIdentityMap(int countMax) {
        this.countMax = countMax;
    }

    boolean isEmpty() {
        return entries.isEmpty();
    }

    /** Returns null if the object is unknown. Allocates nothing. */
    V get(Object object) {
        return get(object, 0);
    }

    /** As {@link #get(Object)}, for the value that the object has for {@code place}. */
    V get(Object object, int place) {
        Lookup lookup = Outermost.here().lookup.of(object, place);
        V value = entries.get(lookup);
        lookup.clear();
        return value;
    }

    /** @return false if the bound is reached. Then nothing changes, not even the value of a known object */
    boolean put(Object object, V value) {
        forgetDead();
        if (entries.size() < countMax) {
            entries.put(new Key(object, 0, dead), value);
            return true;
        }
        return false;
    }

    /** @return null if the object is unknown */
    V remove(Object object) {
        Lookup lookup = Outermost.here().lookup.of(object, 0);
        V value = entries.remove(lookup);
        lookup.clear();
        return value;
    }

    /**
     * Replaces a value atomically. {@code change} gets null for an unknown object and returns null
     * to remove the value.
     *
     * @param place a number; an object may have one value for each number
     * @return false if the object has no value for this place and the bound is reached
     */
    boolean change(Object object, int place, BiFunction<Object, V, V> change) {
        forgetDead();
        if (entries.size() < countMax || get(object, place) != null) {
            entries.compute(new Key(object, place, dead), change);
            return true;
        }
        return false;
    }

    /** As {@link #change}, but only for an object that has a value. Allocates nothing. */
    void changeKnown(Object object, int place, BiFunction<Object, V, V> change) {
        Lookup lookup = Outermost.here().lookup.of(object, place);
        entries.computeIfPresent(lookup, change);
        lookup.clear();
    }

    /** Called when {@code value} was removed because its object was collected. */
    void forgotten(V value) {}

    private void forgetDead() {
        Reference<?> gone = dead.poll();
        while (gone != null) {
            V value = entries.remove(gone);
            if (value != null) {
                forgotten(value);
            }
            gone = dead.poll();
        }
    }

    private static final class Key extends WeakReference<Object> {
        private final int place;
        private final int hash;

        Key(Object object, int place, ReferenceQueue<Object> dead) {
            super(object, dead);
            this.place = place;
            this.hash = hash(object, place);
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
            return object != null && other instanceof Key && ((Key) other).isOf(object, place);
        }

        boolean isOf(Object object, int where) {
            return place == where && get() == object;
        }
    }

    /** A key for a look-up. */
    static final class Lookup {
        private Object object;
        private int place;

        Lookup of(Object wanted, int where) {
            object = wanted;
            place = where;
            return this;
        }

        void clear() {
            object = null;
        }

        @Override
        public int hashCode() {
            return hash(object, place);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).isOf(object, place);
        }
    }

    private static int hash(Object object, int place) {
        return System.identityHashCode(object) + 31 * place;
    }
}
