package io.tachograph.core.instrument;

import java.util.concurrent.atomic.AtomicLong;

/** Counts of selected classes that could not be instrumented, by reason. */
public final class Unwatched {
    private final AtomicLong byConstructor = new AtomicLong();
    private final AtomicLong others = new AtomicLong();

    /** The code of a constructor could not be analysed, so its class stays unchanged. */
    static final class OddConstructor extends RuntimeException {
        private static final long serialVersionUID = 1;

        OddConstructor(String why) {
            super(why);
        }
    }

    void count(Object why) {
        (why instanceof OddConstructor ? byConstructor : others).incrementAndGet();
    }

    /** Because of a constructor that could not be analysed. */
    public long byConstructor() {
        return byConstructor.get();
    }

    /** For any other reason. */
    public long others() {
        return others.get();
    }
}
