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

    /** {@link #end} must follow. */
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
     * Size of all definitions up to now, bytes. A DATA frame may be sent on a connection after the
     * definitions up to the size at which the frame was closed.
     */
    public int size() {
        return bytes.size();
    }

    /**
     * Returns the next DICT frame for a connection.
     *
     * @param from number of bytes already sent on the connection
     * @param to number of bytes needed
     * @return null if all were sent
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
