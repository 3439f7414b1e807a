package io.tachograph.core.wire;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Definitions in the order of their creation, cut into bodies of DICT frames. */
public final class Definitions {
    private static final int BODY_BYTES = 65_536;

    private final Bytes bytes = new Bytes(1_024);

    /**
     * Positions at which a body ends even if more definitions follow; at least {@link #BODY_BYTES}
     * apart.
     */
    private final List<Integer> cuts = new ArrayList<>();

    /** The caller appends one definition to the buffer and then calls {@link #end()}. */
    Bytes begin() {
        return bytes;
    }

    void end() {
        int last = cuts.isEmpty() ? 0 : cuts.get(cuts.size() - 1);
        if (bytes.size() - last >= BODY_BYTES) {
            cuts.add(bytes.size());
        }
    }

    /**
     * Size of all definitions up to now, bytes. The sender notes this size when it closes a DATA
     * frame. On each connection, it sends the definitions up to that size before the frame.
     */
    public int size() {
        return bytes.size();
    }

    /**
     * Returns the next DICT frame for a connection.
     *
     * @param from number of bytes already sent on the connection
     * @param to number of bytes that the connection needs
     * @return null if all of them were sent
     */
    public byte[] frame(int from, int to) {
        if (from >= to) {
            return null;
        }
        return Frame.of(Wire.DICT, bytes.array(), from, end(from, to) - from);
    }

    /** The position after the definitions in the frame that {@link #frame} returns. */
    public int end(int from, int to) {
        int found = Collections.binarySearch(cuts, from + 1);
        int at = found < 0 ? -found - 1 : found;
        return at < cuts.size() ? Math.min(to, cuts.get(at)) : to;
    }
}
