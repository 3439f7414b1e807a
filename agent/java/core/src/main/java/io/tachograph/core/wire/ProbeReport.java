package io.tachograph.core.wire;

import java.util.ArrayList;
import java.util.List;

/** The content of PROBED: the result of applying the rules. */
public final class ProbeReport {
    /** Revision of the answered PROBES frame. */
    public long revision;

    public long on;

    public long aggregated;

    /** Number of methods that the agent itself or a rule of the server has switched off. */
    public long off;

    private final List<Matched> matched = new ArrayList<>();

    private final List<Moved> moved = new ArrayList<>();

    private static final class Matched {
        final long methods;
        final String fault;

        Matched(long methods, String fault) {
            this.methods = methods;
            this.fault = fault;
        }
    }

    private static final class Moved {
        final String operation;
        final String reason;
        final long since;

        Moved(String operation, String reason, long since) {
            this.operation = operation;
            this.reason = reason;
            this.since = since;
        }
    }

    /**
     * Adds the result of the next rule, in the order of PROBES.
     *
     * @param methods number of methods that the rule decides
     * @param fault reason why the rule is invalid, or empty
     */
    public ProbeReport rule(long methods, String fault) {
        matched.add(new Matched(methods, fault));
        return this;
    }

    /**
     * Adds an operation that the agent itself has aggregated or switched off (wire.md, PROBED). The
     * name {@code (all)} means that nothing is left to switch off, and {@code (traces)} that whole
     * traces are not recorded. Operations past the protocol's limit are omitted.
     *
     * @param since ns since the Unix epoch
     */
    public ProbeReport moved(String operation, String reason, long since) {
        if (moved.size() < Wire.PROBED_MOVED_MAX) {
            moved.add(new Moved(operation, reason, since));
        }
        return this;
    }

    public byte[] frame() {
        Bytes frame = Frame.begin(new Bytes(256));
        frame.varint(revision).varint(on).varint(aggregated).varint(off).varint(matched.size());
        for (int at = 0; at < matched.size(); at++) {
            Matched rule = matched.get(at);
            frame.varint(at).varint(rule.methods);
            text(frame, rule.fault);
        }
        frame.varint(moved.size());
        for (Moved operation : moved) {
            text(frame, operation.operation);
            text(frame, operation.reason);
            frame.u64(operation.since);
        }
        Frame.finish(frame, Wire.PROBED);
        return frame.copy();
    }

    private static void text(Bytes frame, String text) {
        frame.blob(Bytes.utf8(text, Wire.PROBED_TEXT_BYTES_MAX));
    }
}
