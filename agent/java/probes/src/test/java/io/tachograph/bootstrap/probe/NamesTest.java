package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.tachograph.bootstrap.Operations;

import org.junit.jupiter.api.Test;

import java.util.HashSet;
import java.util.Set;

class NamesTest {
    @Test
    void aNameIsFoundAgainAndTheNumberOfNamesIsBounded() {
        Names names = new Names(Operations.HTTP_SERVER, 64);
        Set<Integer> operations = new HashSet<>();
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 64; i++) {
                operations.add(names.operation(new StringBuilder("GET /names-test/" + i), 4));
            }
            assertEquals(64, operations.size());
        }
        int other = names.operation(new StringBuilder("GET /names-test/64"), 4);
        assertEquals("GET (other)", Operations.shared().entry(other).name);
        assertEquals(other, names.operation(new StringBuilder("GET /names-test/65"), 4));
        int known = names.operation(new StringBuilder("GET /names-test/7"), 4);
        assertEquals("GET /names-test/7", Operations.shared().entry(known).name);
    }

    @Test
    void earlyNamesPastTheBoundHaveNoOperation() {
        Names names = new Names(Operations.HTTP_SERVER, 64);
        for (int i = 0; i < 100; i++) {
            int early = names.early(new StringBuilder("GET /early-test/" + i));
            assertEquals(i < 64, early != 0, "name " + i);
            assertEquals(early, names.known(new StringBuilder("GET /early-test/" + i)));
        }
    }

    /** The thread waits for the lock while the last free place is taken. */
    @Test
    void anEarlyNameThatFindsTheBoundReachedUnderTheLockHasNoOperation() throws Exception {
        Names names = new Names(Operations.HTTP_SERVER, 1);
        int[] second = {-1};
        Thread thread = new Thread(() -> second[0] = names.early(new StringBuilder("GET /second")));
        synchronized (names) {
            thread.start();
            while (thread.isAlive() && thread.getState() != Thread.State.BLOCKED) {
                Thread.sleep(1);
            }
            assertNotEquals(0, names.early(new StringBuilder("GET /first")));
        }
        thread.join();
        assertEquals(0, second[0]);
    }

    @Test
    void pathsWithStatus404TakeNoSpaceFromOtherPaths() {
        for (int i = 0; i < 2_000; i++) {
            ServerNames.early("GET", "/scanned-x" + i);
            ServerNames.unrouted("GET", "/scanned-x" + i, 404);
        }
        for (int i = 0; i < 1_000; i++) {
            ServerNames.early("GET", "/real-x" + i);
            int operation = ServerNames.unrouted("GET", "/real-x" + i, 200);
            assertEquals("GET /real-x" + i, Operations.shared().entry(operation).name);
            assertEquals(operation, ServerNames.early("GET", "/real-x" + i));
        }
    }

    @Test
    void unknownMethodsBecomeOther() {
        assertEquals("GET", HttpMethods.known("GET"));
        assertEquals("OTHER", HttpMethods.known("get"));
        assertEquals("OTHER", HttpMethods.known("XYZZY"));
        assertEquals("OTHER", HttpMethods.known(null));
    }
}
