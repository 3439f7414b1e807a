package io.tachograph.core.wire;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Definitions in order of creation, cut into bodies of DICT frames. */
public final class Definitions {
    private static final int BODY_BYTES = 65_536;

    private final Bytes bytes = new Bytes(1_024);

    /** Positions where a body may end, some {@link #BODY_BYTES} apart. */
    private final List<Integer> cuts = new ArrayList<>();

    /** Buffer for the next definition; {@link #end} must follow. */
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
     * Bytes of all definitions so far; a DATA frame may be sent once this many were sent on its
     * connection.
     */
    public int size() {
        return bytes.size();
    }

    /**
     * The next DICT frame of a connection.
     *
     * @param from bytes already sent on it
     * @param to bytes needed
     * @return null if all were sent
     */
    public byte[] frame(int from, int to) {
        if (from >= to) {
            return null;
        }
        return Frame.of(Wire.DICT, bytes.array(), from, end(from, to) - from);
    }

    /** End of the frame returned by {@link #frame}. */
    public int end(int from, int to) {
        int found = Collections.binarySearch(cuts, from + 1);
        int at = found < 0 ? -found - 1 : found;
        return at < cuts.size() ? Math.min(to, cuts.get(at)) : to;
    }
}
