package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;

class WeakIdentityMapTest {
    /** An object whose {@code equals} and {@code hashCode} fail the test if they are called. */
    private static final class Rude {
        @Override
        public boolean equals(Object other) {
            throw new AssertionError("equals was called");
        }

        @Override
        public int hashCode() {
            throw new AssertionError("hashCode was called");
        }
    }

    @Test
    void objectsAreDistinguishedByIdentity() {
        WeakIdentityMap<Integer> map = new WeakIdentityMap<>(1_000);
        Rude[] objects = new Rude[100];
        for (int i = 0; i < objects.length; i++) {
            objects[i] = new Rude();
            map.put(objects[i], i);
        }
        for (int i = 0; i < objects.length; i++) {
            assertEquals(i, map.get(objects[i]));
        }
        assertNull(map.get(new Rude()));
        assertEquals(7, map.remove(objects[7]));
        assertNull(map.get(objects[7]));
        map.change(objects[8], 0, (key, value) -> value + 1);
        assertEquals(9, map.get(objects[8]));
        map.change(objects[8], 0, (key, value) -> null);
        assertNull(map.get(objects[8]));
    }

    @Test
    void theNumberIsBoundedAndCollectedObjectsAreRemoved() throws Exception {
        WeakIdentityMap<Integer> map = new WeakIdentityMap<>(10);
        Object[] kept = new Object[10];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new Object();
            map.put(kept[i], i);
        }
        Object late = new Object();
        map.put(late, 99);
        assertNull(map.get(late), "an object past the bound was stored");
        java.util.Arrays.fill(kept, null);
        for (int round = 0; round < 100 && map.get(late) == null; round++) {
            System.gc();
            Thread.sleep(10);
            map.put(late, 99);
        }
        assertEquals(99, map.get(late));
    }

    @Test
    void lookingUpAllocatesNothing() {
        WeakIdentityMap<Integer> map = new WeakIdentityMap<>(10);
        Object object = new Object();
        map.put(object, 1);
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long sum = 0;
        long before = 0;
        for (int i = 0; i < 20_000; i++) {
            if (i == 10_000) {
                before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            }
            sum += map.get(object);
        }
        long allocated = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
        assertTrue(
                sum == 20_000 && allocated < 10_000,
                "10,000 look-ups allocated " + allocated + " bytes");
    }
}
