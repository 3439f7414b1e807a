package io.tachograph.bootstrap.probe;

/**
 * Prevents recording the same work twice: only the outermost call of each sort on a thread is
 * recorded. For example, a filter calls a servlet that forwards to another servlet, or a pool's
 * statement calls the driver's statement.
 */
public final class Outermost {
    /** The token of a call inside another call of the same sort. */
    public static final int INSIDE = Integer.MIN_VALUE;

    public static final int HTTP_SERVER = 0;
    public static final int HTTP_CLIENT = 1;
    public static final int STATEMENT = 2;
    public static final int PREPARE = 3;
    public static final int CONNECTION = 4;

    /**
     * The sort that is open while a pool starts one of its threads. The current call is not the
     * parent of the thread, which outlives the call.
     */
    public static final int POOL_THREAD = 5;

    // A subclass instead of a lambda: this code also runs while the JVM starts its first threads,
    // when it may not be able to link a lambda yet.
    private static final ThreadLocal<Outermost> LOCAL =
            new ThreadLocal<>() {
                @Override
                protected Outermost initialValue() {
                    return new Outermost();
                }
            };

    private final boolean[] open = new boolean[POOL_THREAD + 1];

    /** Reused, so that a look-up allocates no key. */
    final WeakIdentityMap.Lookup lookup = new WeakIdentityMap.Lookup();

    /** Reused, so that submissions and runs allocate no {@code Change}. */
    final HandOvers.Change handOvers = new HandOvers.Change();

    /** Reused, so that building a name allocates no string. */
    final StringBuilder text = new StringBuilder(128);

    /** The state of {@link #HTTP_SERVER}. */
    final ServerRequest request = new ServerRequest();

    /** The outermost open request of {@link #HTTP_CLIENT}; null if there is none. */
    HttpClient sending;

    /** The dialect of the open {@link #PREPARE}, if it is known yet. */
    SqlDialect preparing = SqlDialect.OTHER;

    /** Token of the open {@link #STATEMENT} while its dialect is unknown; else 0. */
    int poolCall;

    /** SQL text of {@link #poolCall}; null for a prepared statement or a batch. */
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
     * @return false if this thread is already inside {@code sort}; if true, {@link #leave} must
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
