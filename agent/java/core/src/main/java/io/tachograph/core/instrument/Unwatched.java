package io.tachograph.core.instrument;

import java.util.concurrent.atomic.AtomicLong;

/** Classes that a rule or a probe concerns and that stay as they are, by the reason. */
public final class Unwatched {
    private final AtomicLong byConstructor = new AtomicLong();
    private final AtomicLong others = new AtomicLong();

    /** A constructor's code was not understood, so its class is left alone. */
    static final class OddConstructor extends RuntimeException {
        private static final long serialVersionUID = 1;

        OddConstructor(String why) {
            super(why);
        }
    }

    void count(Object why) {
        (why instanceof OddConstructor ? byConstructor : others).incrementAndGet();
    }

    /** For a constructor whose code was not understood. */
    public long byConstructor() {
        return byConstructor.get();
    }

    /** For any other reason. */
    public long others() {
        return others.get();
    }
}
