package io.tachograph.bootstrap.probe;

/**
 * Keeps one thing from being recorded twice: a filter calls a servlet that forwards to another, a
 * pool's statement calls the driver's. Only the first of each sort that a thread enters is
 * recorded; what it calls of the same sort is not.
 */
public final class Outermost {
    /** The token of a call that is inside another one of its sort. */
    public static final int INSIDE = Integer.MIN_VALUE;

    public static final int HTTP_SERVER = 0;
    public static final int HTTP_CLIENT = 1;
    public static final int STATEMENT = 2;
    public static final int PREPARE = 3;
    public static final int CONNECTION = 4;

    /** A pool starts a thread of its own: it outlives what happened to be going on. */
    public static final int POOL_THREAD = 5;

    // A subclass, not a lambda: this also runs while the JVM starts its first threads.
    private static final ThreadLocal<Outermost> LOCAL =
            new ThreadLocal<>() {
                @Override
                protected Outermost initialValue() {
                    return new Outermost();
                }
            };

    private final boolean[] open = new boolean[POOL_THREAD + 1];

    /** For looking things up without making a key each time. */
    final WeakIdentityMap.Lookup lookup = new WeakIdentityMap.Lookup();

    /** For noting hand-overs without making an object each time. */
    final HandOvers.Change handOvers = new HandOvers.Change();

    /** For putting names together without making a string each time. */
    final StringBuilder text = new StringBuilder(128);

    /** That of {@link #HTTP_SERVER}. */
    final ServerRequest request = new ServerRequest();

    /** The outermost request of {@link #HTTP_CLIENT} that is open; null for none. */
    HttpClient sending;

    /** The dialect that {@link #PREPARE} prepares for, as far as it is known. */
    SqlDialect preparing = SqlDialect.OTHER;

    /** Token of {@link #STATEMENT} while its dialect is not known; 0 for none. */
    int poolCall;

    /** What it executes; null for what was prepared or collected. */
    String poolText;

    int poolOperation;

    private Outermost() {}

    void forgetPool() {
        poolCall = 0;
        poolText = null;
    }

    static Outermost here() {
        return LOCAL.get();
    }

    boolean isOpen(int sort) {
        return open[sort];
    }

    /**
     * @return false if this thread is inside {@code sort} already; if true, {@link #leave} must
     *     follow
     */
    public static boolean enter(int sort) {
        boolean[] open = LOCAL.get().open;
        if (open[sort]) {
            return false;
        }
        open[sort] = true;
        return true;
    }

    public static void leave(int sort) {
        LOCAL.get().open[sort] = false;
    }

    public static boolean isInside(int sort) {
        return LOCAL.get().open[sort];
    }
}
