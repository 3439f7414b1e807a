package io.tachograph.core.instrument;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.bytebuddy.jar.asm.Label;

import org.junit.jupiter.api.Test;

/** Constructors in class files without stack map frames. */
class InitialisedTest {
    private final Initialised self = new Initialised();

    private void comesTo(Label label) {
        self.comesTo(label);
        self.reach();
    }

    /**
     * <pre>
     *              ifeq wrong
     *              super(...)
     * tried:       ...  return
     * one:         catch (One e) { ... }
     * wrong:       throw
     * other:       catch (Other e) { ... }
     * </pre>
     */
    @Test
    void eachHandlerOfATryHasTheStateOfItsRange() {
        Label tried = new Label();
        Label one = new Label();
        Label other = new Label();
        Label wrong = new Label();
        self.catches(tried, one);
        self.catches(tried, other);
        self.reach();
        self.goesTo(wrong);
        assertTrue(self.initialises());
        comesTo(tried);
        self.leave();
        comesTo(one);
        assertTrue(self.is());
        self.leave();
        comesTo(wrong);
        assertFalse(self.is());
        self.leave();
        comesTo(other);
        assertTrue(self.is());
    }
}
