package io.tachograph.core.instrument;

import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.Opcodes;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Tracks whether {@code this} is initialised at the visited position of a constructor. If the class
 * file has stack map frames, they contain this state. Class files older than Java 7 may have no
 * frames. Without frames, the state at a label is the state at the jumps to that label. If all
 * jumps to a label come later in the code, the label gets the state of the code above it.
 */
final class Initialised {
    private boolean is;

    /**
     * Number of objects that are created but not yet initialised. If the number is 0 at a call of
     * an {@code <init>}, that call initialises {@code this}.
     */
    private int made;

    /**
     * True if the previous instruction never continues with the next instruction. The state at the
     * next instruction then comes from its label or frame.
     */
    private boolean isApart;

    private final Map<Label, Boolean> known = new HashMap<>();

    /** The handlers whose ranges have not begun yet, by the first label of the range. */
    private final Map<Label, List<Label>> handlers = new HashMap<>();

    boolean is() {
        return is && !isApart;
    }

    void made() {
        made++;
    }

    /** Handles a call of an {@code <init>}. @return true if it initialises {@code this} */
    boolean initialises() {
        if (made > 0) {
            made--;
            return false;
        }
        if (is()) {
            // This cannot happen on one path, so the objects were miscounted.
            throw new Unwatched.OddConstructor("a constructor calls super(...) twice");
        }
        is = true;
        isApart = false;
        return true;
    }

    void goesTo(Label label) {
        known.putIfAbsent(label, is);
    }

    void reach() {
        isApart = false;
    }

    /** Called after an instruction that ends a path. */
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
