package io.tachograph.bootstrap;

/**
 * Advice that threw. The program does not notice; here it is counted by place, with the exception
 * that came last, until the sender takes it.
 *
 * <p>The handler that is compiled into the advice writes the two arrays itself, without a call and
 * without an allocation: what ended the advice may have been the end of the stack, and an exception
 * out of the handler would be the program's. So it counts without a lock, too: of several that fail
 * at the same instant at the same place one may count for all.
 *
 * <p>Before: the handler, {@code io.tachograph.core.instrument.FaultHandler}. After: {@code
 * io.tachograph.core.send.FaultLog}.
 */
public final class AdviceFaults {
    /** There are some thirty; what is past the bound is counted at the first place. */
    public static final int PLACES_MAX = 128;

    /** The place of what {@link Recorder} does in constructors. */
    static final int CONSTRUCTORS = 1;

    // Public: inlined into classes of the program.

    /** How many failed since the start, by place. */
    public static final long[] COUNTS = new long[PLACES_MAX];

    /** What was thrown last and has not been taken yet, by place. */
    public static final Throwable[] LATEST = new Throwable[PLACES_MAX];

    private static final Place[] PLACES = new Place[PLACES_MAX];
    private static volatile int size;

    static {
        place("(other)", "(other)");
        place("methods", "constructors");
    }

    private AdviceFaults() {}

    /** Where advice is. */
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

    /** What was thrown last; it is forgotten here, so that no object of the program is held. */
    public static Throwable take(int number) {
        Throwable thrown = LATEST[number];
        LATEST[number] = null;
        return thrown;
    }
}
