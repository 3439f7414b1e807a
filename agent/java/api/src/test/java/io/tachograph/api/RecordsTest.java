package io.tachograph.api;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.tachograph.api.processor.Compiled;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;

/** Generated code without an agent, and with an agent that is attached later. */
class RecordsTest {
    private static final Path AGENT = Path.of("../bootstrap/target/classes");

    private static final String SOURCE =
            "import io.tachograph.api.Record;"
                    + "@Record interface Orders { void placed(String customer, int items); }"
                    + "class Caller { public static void call() {"
                    + "    OrdersRecords.get().placed(\"ada\", 3); } }";

    private static Object call(ClassLoader loader, String type, String method) throws Exception {
        var found = loader.loadClass(type).getDeclaredMethod(method);
        found.setAccessible(true);
        return found.invoke(null);
    }

    private static boolean isOn(ClassLoader loader) throws Exception {
        return (boolean) call(loader, "io.tachograph.api.Records", "on");
    }

    @Test
    void withoutAnAgentNothingHappens() throws Exception {
        ClassLoader loader = Compiled.of("Orders", SOURCE).apart();
        assertThrows(
                ClassNotFoundException.class,
                () -> loader.loadClass("io.tachograph.bootstrap.Recorder"));
        call(loader, "p.Caller", "call");
        assertFalse(isOn(loader));
        call(loader, "io.tachograph.api.Records", "attached");
        assertFalse(isOn(loader));
    }

    @Test
    void anAgentMayBeAttachedLater() throws Exception {
        ClassLoader loader = Compiled.of("Orders", SOURCE).apart(AGENT);
        call(loader, "p.Caller", "call");
        assertFalse(isOn(loader), "on, although the agent has not started (only its classes are loaded)");
        Class<?> options = loader.loadClass("io.tachograph.bootstrap.Buffers$Options");
        Class<?> recorder = loader.loadClass("io.tachograph.bootstrap.Recorder");
        recorder.getMethod("start", options)
                .invoke(null, options.getDeclaredConstructor().newInstance());
        assertFalse(isOn(loader));
        call(loader, "io.tachograph.api.Records", "attached");
        assertTrue(isOn(loader));

        Object buffer = call(loader, "io.tachograph.bootstrap.Recorder", "buffer");
        long before = (long) buffer.getClass().getMethod("published").invoke(buffer);
        call(loader, "p.Caller", "call");
        long after = (long) buffer.getClass().getMethod("published").invoke(buffer);
        assertEquals(2, after - before, "a record must take one word with type and time, and one for the number");
        assertEquals("ada", buffer.getClass().getMethod("takeObject").invoke(buffer));
        Object types = call(loader, "io.tachograph.bootstrap.RecordTypes", "shared");
        Object entry = types.getClass().getMethod("entry", int.class).invoke(types, 1);
        assertEquals("orders_placed", entry.getClass().getField("name").get(entry));
    }
}
