package io.tachograph.core.instrument;

import java.util.concurrent.atomic.AtomicLong;

/** Counts of classes that could not be instrumented although a probe selects them, by reason. */
public final class Unwatched {
    private final AtomicLong byConstructor = new AtomicLong();
    private final AtomicLong others = new AtomicLong();

    /** The code of a constructor could not be analysed. Its class stays unchanged. */
    static final class OddConstructor extends RuntimeException {
        private static final long serialVersionUID = 1;

        OddConstructor(String why) {
            super(why);
        }
    }

    void count(Object why) {
        (why instanceof OddConstructor ? byConstructor : others).incrementAndGet();
    }

    public long byConstructor() {
        return byConstructor.get();
    }

    public long others() {
        return others.get();
    }
}
