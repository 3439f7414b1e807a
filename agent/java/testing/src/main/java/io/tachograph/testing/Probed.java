package io.tachograph.testing;

import java.util.ArrayList;
import java.util.List;

/** The PROBED answer of a client. */
public record Probed(
        long revision, long on, long aggregated, long off, List<Matched> rules, List<Moved> moved) {

    public record Matched(long methods, String fault) {}

    /**
     * An operation that the client itself has aggregated or switched off. {@code since} is ns since
     * the epoch.
     */
    public record Moved(String operation, String reason, long since) {}

    static Probed read(byte[] body) {
        Fields in = new Fields(body);
        long revision = in.varint();
        long on = in.varint();
        long aggregated = in.varint();
        long off = in.varint();
        List<Matched> rules = new ArrayList<>();
        int count = in.count();
        for (int at = 0; at < count; at++) {
            Fields.check(in.count() == at, "rules of PROBED are out of order");
            rules.add(new Matched(in.varint(), in.string()));
        }
        List<Moved> moved = new ArrayList<>();
        int moves = in.count();
        Fields.check(moves <= 256, moves + " moved operations");
        for (int at = 0; at < moves; at++) {
            moved.add(new Moved(in.string(), in.string(), in.u64()));
        }
        Fields.check(in.atEnd(), "unread bytes after PROBED");
        return new Probed(revision, on, aggregated, off, rules, moved);
    }

    /** Number of methods that rule {@code at} decides. */
    public long matched(int at) {
        return rules.get(at).methods();
    }
}
