package io.tachograph.testing;

/** A rule of the server. State 0 is off, 1 on, 2 aggregate. */
public record ProbeRule(int state, String pattern) {
    public static ProbeRule off(String pattern) {
        return new ProbeRule(0, pattern);
    }

    public static ProbeRule on(String pattern) {
        return new ProbeRule(1, pattern);
    }

    public static ProbeRule aggregate(String pattern) {
        return new ProbeRule(2, pattern);
    }
}
