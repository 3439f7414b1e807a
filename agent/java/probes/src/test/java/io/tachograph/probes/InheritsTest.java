package io.tachograph.probes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;

/** Inherited types of a class, some of whose ancestors may have no class file. */
class InheritsTest {
    interface Made {}

    interface Wanted {}

    static class Parent implements Made, Wanted {}

    static class MadeParent {}

    static class Child extends Parent {}

    static class Orphan extends MadeParent implements Wanted {}

    static class Lost extends MadeParent implements Made {}

    private static final String HERE = InheritsTest.class.getName() + "$";

    /**
     * Describes a class from class files. Classes whose names begin with Made have no class file.
     */
    private static TypeDescription describe(String name) {
        ClassFileLocator all = ClassFileLocator.ForClassLoader.of(Wanted.class.getClassLoader());
        ClassFileLocator some =
                new ClassFileLocator() {
                    @Override
                    public Resolution locate(String asked) throws IOException {
                        return asked.startsWith(HERE + "Made")
                                ? new Resolution.Illegal(asked)
                                : all.locate(asked);
                    }

                    @Override
                    public void close() {}
                };
        return TypePool.Default.WithLazyResolution.of(some).describe(HERE + name).resolve();
    }

    @ParameterizedTest
    @CsvSource({
        "Wanted, true",
        "Parent, true",
        "Child, true",
        "Orphan, true",
        "Lost, false",
    })
    void ancestorsWithoutAFileAreIgnored(String name, boolean expected) {
        assertEquals(expected, new Inherits(HERE + "Wanted").matches(describe(name)));
        assertFalse(new Inherits("no.such.Type").matches(describe(name)));
    }
}
