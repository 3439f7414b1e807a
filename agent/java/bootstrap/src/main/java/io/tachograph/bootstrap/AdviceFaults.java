package io.tachograph.bootstrap;

/**
 * Exceptions thrown by advice: counted by place, with the latest exception of each place, until the
 * sender takes it. They do not reach the program.
 *
 * <p>The handler compiled into the advice writes both arrays without a call or an allocation,
 * because the advice may have failed with a stack overflow, and an exception from the handler would
 * reach the program. It also takes no lock, so failures at the same place and instant may be
 * counted once.
 *
 * <p>Before: the handler, {@code io.tachograph.core.instrument.FaultHandler}. After: {@code
 * io.tachograph.core.send.FaultLog}.
 */
public final class AdviceFaults {
    /** About thirty places exist; places past this bound are counted under the first one. */
    public static final int PLACES_MAX = 128;

    /** The place of the code of {@link Recorder} that runs in constructors. */
    static final int CONSTRUCTORS = 1;

    // Public: inlined into classes of the program.

    /** Failures since the start, by place. */
    public static final long[] COUNTS = new long[PLACES_MAX];

    /** Latest exception of each place that the sender has not taken yet. */
    public static final Throwable[] LATEST = new Throwable[PLACES_MAX];

    private static final Place[] PLACES = new Place[PLACES_MAX];
    private static volatile int size;

    static {
        place("(other)", "(other)");
        place("methods", "constructors");
    }

    private AdviceFaults() {}

    /** Location of advice: probe and advice class. */
    public static final class Place {
        public final String probe;
        public final String advice;

        Place(String probe, String advice) {
            this.probe = probe;
            this.advice = advice;
        }
    }

    /**
     * @return the place's number, the same for the same names
     */
    public static synchronized int place(String probe, String advice) {
        for (int at = 0; at < size; at++) {
            if (PLACES[at].probe.equals(probe) && PLACES[at].advice.equals(advice)) {
                return at;
            }
        }
        if (size == PLACES_MAX) {
            return 0;
        }
        PLACES[size] = new Place(probe, advice);
        return size++;
    }

    // ---- for the sender ----

    /** Numbers below this are places. */
    public static int size() {
        return size;
    }

    public static Place place(int number) {
        return PLACES[number];
    }

    public static long count(int number) {
        return COUNTS[number];
    }

    /** Returns the latest exception and clears it, so that no object of the program is retained. */
    public static Throwable take(int number) {
        Throwable thrown = LATEST[number];
        LATEST[number] = null;
        return thrown;
    }
}
