package io.tachograph.core.instrument;

import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.Opcodes;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Is {@code this} initialised at the place of a constructor that is being visited? Frames say it
 * where there are any; in class files older than Java 7 it is what the jumps to a label said, or,
 * for code that is reached by jumps from below only, what the code above it had.
 */
final class Initialised {
    private boolean is;

    /**
     * Objects made but not yet initialised: an {@code <init>} beside those is the one of {@code
     * this}.
     */
    private int made;

    /** What comes now is not reached from above; its label or its frame may say more. */
    private boolean isApart;

    private final Map<Label, Boolean> known = new HashMap<>();

    /** Handlers, one for each {@code catch}, whose range has not begun, by its first label. */
    private final Map<Label, List<Label>> handlers = new HashMap<>();

    boolean is() {
        return is && !isApart;
    }

    void made() {
        made++;
    }

    /** An {@code <init>} is called. @return whether it was that of {@code this} */
    boolean initialises() {
        if (made > 0) {
            made--;
            return false;
        }
        if (is()) {
            // Two on one path cannot be: the objects were counted wrongly.
            throw new Unwatched.OddConstructor("a constructor calls super(...) twice");
        }
        is = true;
        isApart = false;
        return true;
    }

    void goesTo(Label label) {
        known.putIfAbsent(label, is);
    }

    /** An instruction comes. */
    void reach() {
        isApart = false;
    }

    /** The instruction before was the end of a path. */
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
