package io.tachograph.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A call as the server received it, with its callees of the same segment. */
public final class Call {
    /** The operation according to the last received part of its segment. */
    public String operation;

    public final int kind;
    public final String traceId;

    /** Span id as 16 hex digits. */
    public final String span;

    /**
     * Span id of the caller. Null for the first call of a trace, and for a call whose enter was not
     * received.
     */
    public final String parent;
    public final String thread;
    public final long start;

    /** Null while the call is open. */
    public Long end;

    public boolean failed;
    public final List<Call> children = new ArrayList<>();
    public final Map<String, String> attributes = new TreeMap<>();

    Call(
            String operation,
            int kind,
            String traceId,
            String span,
            String parent,
            String thread,
            long start) {
        this.operation = operation;
        this.kind = kind;
        this.traceId = traceId;
        this.span = span;
        this.parent = parent;
        this.thread = thread;
        this.start = start;
    }

    /**
     * The tree in one line: {@code a(b c!)}. A failed call has an exclamation mark, an open call a
     * question mark.
     */
    public String shape() {
        StringBuilder out = new StringBuilder();
        shape(out);
        return out.toString();
    }

    private void shape(StringBuilder out) {
        out.append(operation).append(end == null ? "?" : failed ? "!" : "");
        if (!children.isEmpty()) {
            out.append('(');
            for (int at = 0; at < children.size(); at++) {
                if (at > 0) {
                    out.append(' ');
                }
                children.get(at).shape(out);
            }
            out.append(')');
        }
    }

    public int depth() {
        // Visits the tree level by level, because 10,000 nested calls of some tests are too many
        // for a recursion.
        int deepest = 0;
        List<Call> level = List.of(this);
        while (!level.isEmpty()) {
            deepest++;
            List<Call> next = new ArrayList<>();
            level.forEach(call -> next.addAll(call.children));
            level = next;
        }
        return deepest;
    }

    public int size() {
        int count = 0;
        List<Call> level = List.of(this);
        while (!level.isEmpty()) {
            count += level.size();
            List<Call> next = new ArrayList<>();
            level.forEach(call -> next.addAll(call.children));
            level = next;
        }
        return count;
    }
}
