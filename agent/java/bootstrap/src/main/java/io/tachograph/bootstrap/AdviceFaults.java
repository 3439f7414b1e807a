package io.tachograph.bootstrap;

/**
 * Exceptions that advice threw; they do not reach the program. They are counted by place (probe and
 * advice class). The latest exception of each place is kept until the sender takes it.
 *
 * <p>The exception handler in the advice writes {@link #COUNTS} and {@link #LATEST} without a call
 * or an allocation. After a stack overflow or without memory, a call or an allocation could fail
 * again, and the exception would reach the program. The handler also takes no lock, so two failures
 * at the same place and instant may be counted as one.
 *
 * <p>Before: the handler, {@code io.tachograph.core.instrument.FaultHandler}. After: {@code
 * io.tachograph.core.send.FaultLog}.
 */
public final class AdviceFaults {
    /** About thirty places exist. Places past this bound are counted as {@code (other)}. */
    public static final int PLACES_MAX = 128;

    /** The place of failures in the methods of {@link Recorder} for constructors. */
    static final int CONSTRUCTORS = 1;

    // Public, because code that is inlined into classes of the program writes these arrays.

    /** Failures since the start, by place. */
    public static final long[] COUNTS = new long[PLACES_MAX];

    /** Latest exception of each place; null if there is none or the sender has taken it. */
    public static final Throwable[] LATEST = new Throwable[PLACES_MAX];

    private static final Place[] PLACES = new Place[PLACES_MAX];
    private static volatile int size;

    static {
        place("(other)", "(other)");
        place("methods", "constructors");
    }

    private AdviceFaults() {}

    public static final class Place {
        public final String probe;
        public final String advice;

        Place(String probe, String advice) {
            this.probe = probe;
            this.advice = advice;
        }
    }

    /** @return the number of the place; the same names always get the same number */
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

    /** Number of known places. Places are numbered from 0. */
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
