package io.tachograph.core.instrument;

import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.Opcodes;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Tracks whether {@code this} is initialised at the visited position of a constructor. Stack map
 * frames state it if there are any; in class files older than Java 7 it is the state at the jumps
 * to a label, or, for code that is reached only by jumps from below, the state of the code above
 * it.
 */
final class Initialised {
    private boolean is;

    /**
     * Objects created but not yet initialised: an {@code <init>} beyond those is the one of {@code
     * this}.
     */
    private int made;

    /** The next instruction is not reached from above; its label or frame may define the state. */
    private boolean isApart;

    private final Map<Label, Boolean> known = new HashMap<>();

    /** Handlers, one per {@code catch}, whose range has not begun, by its first label. */
    private final Map<Label, List<Label>> handlers = new HashMap<>();

    boolean is() {
        return is && !isApart;
    }

    void made() {
        made++;
    }

    /** An {@code <init>} is called. @return true if it initialises {@code this} */
    boolean initialises() {
        if (made > 0) {
            made--;
            return false;
        }
        if (is()) {
            // Impossible on one path: the objects were miscounted.
            throw new Unwatched.OddConstructor("a constructor calls super(...) twice");
        }
        is = true;
        isApart = false;
        return true;
    }

    void goesTo(Label label) {
        known.putIfAbsent(label, is);
    }

    /** Called before each instruction. */
    void reach() {
        isApart = false;
    }

    /** The previous instruction ended a path. */
    void leave() {
        isApart = true;
    }

    void catches(Label from, Label handler) {
        handlers.computeIfAbsent(from, label -> new ArrayList<>()).add(handler);
    }

    void comesTo(Label label) {
        Boolean said = known.get(label);
        if (isApart && said != null) {
            is = said;
            isApart = false;
        }
        List<Label> begun = handlers.remove(label);
        if (begun != null) {
            begun.forEach(handler -> known.putIfAbsent(handler, is));
        }
    }

    void frame(int count, Object[] locals) {
        boolean isThere = count > 0 && locals[0] != Opcodes.TOP;
        if (isThere) {
            is = locals[0] != Opcodes.UNINITIALIZED_THIS;
        }
        isApart = false;
    }
}
