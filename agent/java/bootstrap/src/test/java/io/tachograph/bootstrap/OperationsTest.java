package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

class OperationsTest {
    private static final int OTHERS = 6;

    @Test
    void aNameHasOneIdForEachKind() {
        Operations operations = new Operations(100, 10);
        int method = operations.id(Operations.METHOD, "a");
        assertEquals(method, operations.id(Operations.METHOD, "a"));
        assertNotEquals(method, operations.id(Operations.DATABASE, "a"));
        assertEquals("a", operations.entry(method).name);
        assertEquals(
                Operations.DATABASE,
                operations.entry(operations.id(Operations.DATABASE, "a")).kind);
        assertNull(operations.entry(0));
        assertNull(operations.entry(99));
        assertEquals(method, operations.id(77, "a"), "an unknown kind must count as method");
    }

    @Test
    void namesPastTheBoundAreOther() {
        Operations operations = new Operations(OTHERS + 20, 4);
        for (int at = 0; at < 3; at++) {
            assertEquals(
                    at + "", operations.entry(operations.id(Operations.DATABASE, at + "")).name);
        }
        int other = operations.id(Operations.DATABASE, "one more");
        assertEquals(Operations.OTHER, operations.entry(other).name);
        assertEquals(Operations.DATABASE, operations.entry(other).kind);
        assertEquals(other, operations.id(Operations.DATABASE, "and another"));
        for (int at = 0; at < 17; at++) {
            assertNotEquals(
                    Operations.OTHER,
                    operations.entry(operations.id(Operations.METHOD, at + "")).name);
        }
        assertEquals(
                Operations.OTHER, operations.entry(operations.id(Operations.METHOD, "x")).name);
    }

    @Test
    void theTableGrows() {
        Operations operations = new Operations(Operations.COUNT_MAX, Operations.DYNAMIC_MAX);
        for (int at = 0; at < 5_000; at++) {
            operations.id(Operations.METHOD, "m" + at);
        }
        assertEquals("m4999", operations.entry(operations.id(Operations.METHOD, "m4999")).name);
    }
}
