package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

class HandOverCountsTest {
    private final HandOverCounts counts = new HandOverCounts();

    @Test
    void eachPairOfQueueAndObjectHasItsOwnCount() {
        Object one = new Object();
        Object other = new Object();
        for (int at = 0; at < 3; at++) {
            assertTrue(counts.increment(7, one));
        }
        assertTrue(counts.increment(8, one));
        assertTrue(counts.increment(7, other));
        assertTrue(counts.decrement(7, one));
        assertEquals(2, counts.takeAll(7, one));
        assertEquals(0, counts.takeAll(7, one));
        assertFalse(counts.decrement(7, one));
        assertTrue(counts.decrement(8, one));
        assertFalse(counts.decrement(8, one));
        assertEquals(1, counts.takeAll(7, other));
    }

    /** A submission that finds no space does not change existing counts. */
    @Test
    void theNumberOfCountsIsBounded() {
        List<Object> counted = new ArrayList<>();
        List<Object> refused = new ArrayList<>();
        for (int at = 0; at < 100_000; at++) {
            Object object = new Object();
            (counts.increment(1, object) ? counted : refused).add(object);
        }
        assertEquals(8_192, counted.size());
        refused.forEach(object -> assertFalse(counts.decrement(1, object)));
        counted.forEach(object -> assertEquals(1, counts.takeAll(1, object)));
        assertTrue(counts.increment(1, refused.get(0)));
    }

    /** If many objects share a bucket, the count of one object may be the sum of several words. */
    @Test
    void countsEqualThoseOfASimpleMap() {
        Random random = new Random(7);
        List<Object> objects = new ArrayList<>();
        Map<Object, Integer> expected = new IdentityHashMap<>();
        for (int at = 0; at < 4_000; at++) {
            objects.add(new Object());
        }
        for (int step = 0; step < 400_000; step++) {
            Object object = objects.get(random.nextInt(objects.size()));
            if (random.nextInt(5) < 2) {
                if (counts.increment(1, object)) {
                    expected.merge(object, 1, Integer::sum);
                }
            } else {
                assertEquals(expected.containsKey(object), counts.decrement(1, object));
                expected.computeIfPresent(object, (key, count) -> count == 1 ? null : count - 1);
            }
        }
        for (Object object : objects) {
            assertEquals(expected.getOrDefault(object, 0), counts.takeAll(1, object));
        }
    }

    /** The count in a word has 16 bits, and the excess goes into another word. */
    @Test
    void countsMayExceedOneWord() {
        Object object = new Object();
        for (int at = 0; at < 70_000; at++) {
            assertTrue(counts.increment(1, object));
        }
        assertTrue(counts.decrement(1, object));
        assertEquals(69_999, counts.takeAll(1, object));
    }

    @Test
    void noCountOfAnyThreadIsLost() throws Exception {
        Object[] objects = new Object[64];
        for (int at = 0; at < objects.length; at++) {
            objects[at] = new Object();
        }
        Thread[] threads = new Thread[4];
        for (int index = 0; index < threads.length; index++) {
            threads[index] =
                    new Thread(
                            () -> {
                                for (int at = 0; at < 200_000; at++) {
                                    Object object = objects[at % objects.length];
                                    counts.increment(1, object);
                                    counts.increment(1, object);
                                    counts.decrement(1, object);
                                }
                            });
            threads[index].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        int sum = 0;
        for (Object object : objects) {
            sum += counts.takeAll(1, object);
        }
        assertEquals(800_000, sum);
    }
}
