package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

/**
 * SQL statements: which operation is it, how long did it take. The text of a prepared one is read
 * when it is prepared; to execute it again costs a look-up and no allocation.
 */
public final class Statements {
    /** Of all remembered texts together: 8 MiB at most, 4 MiB of Latin letters. */
    private static final long TEXTS_CHARS_MAX = 4 << 20;

    private static final int PREPARED_MAX = 65_536;

    /** Prepared before it was watched, or made in a way that is not watched. */
    private static final String UNKNOWN = "(prepared statement)";

    private static final StatementTexts TEXTS = new StatementTexts(TEXTS_CHARS_MAX);

    private static final WeakIdentityMap<Integer> PREPARED = new WeakIdentityMap<>(PREPARED_MAX);

    private Statements() {}

    /**
     * A connection begins to prepare a statement. A pool's connection does not tell the dialect;
     * the driver's, which is entered inside, does.
     *
     * @return whether it is the outermost one, so that {@link #leavePrepare} must follow
     */
    public static boolean enterPrepare(Object connection) {
        boolean isOutermost = Outermost.enter(Outermost.PREPARE);
        Outermost here = Outermost.here();
        SqlDialect dialect = SqlDialect.of(connection.getClass());
        if (isOutermost || dialect != SqlDialect.OTHER) {
            here.preparing = dialect;
        }
        return isOutermost;
    }

    /** The outermost connection has prepared a statement; null if it failed. */
    public static void leavePrepare(Object statement, String text) {
        Outermost.leave(Outermost.PREPARE);
        learn(statement, text, Outermost.here().preparing);
    }

    private static void learn(Object statement, String text, SqlDialect dialect) {
        if (statement != null && text != null) {
            PREPARED.put(statement, operation(text, dialect));
        }
    }

    /** A text was added to a statement's batch: the first one names it. */
    public static void learnBatch(Object statement, String text) {
        if (PREPARED.get(statement) == null) {
            learn(statement, text, SqlDialect.of(statement.getClass()));
        }
    }

    /** A statement was closed. */
    public static void forget(Object statement) {
        if (!PREPARED.isEmpty()) {
            PREPARED.remove(statement);
        }
    }

    /**
     * A statement is executed.
     *
     * @param text what is executed; null for what was prepared or collected
     * @return the call's token
     */
    public static int enter(Object statement, String text) {
        SqlDialect dialect = SqlDialect.of(statement.getClass());
        Outermost here = Outermost.here();
        if (!Outermost.enter(Outermost.STATEMENT)) {
            if (here.poolCall != 0 && dialect != SqlDialect.OTHER) {
                nameAs(here, statement, dialect);
            }
            return Outermost.INSIDE;
        }
        Integer known = text == null ? PREPARED.get(statement) : null;
        int operation = known != null ? known : operation(text == null ? UNKNOWN : text, dialect);
        int call = Recorder.enter(operation);
        if (call > 0 && dialect == SqlDialect.OTHER) {
            here.poolCall = call;
            here.poolText = text;
            here.poolOperation = operation;
        }
        return call;
    }

    /**
     * The statement of a pool executes that of the driver, which tells the dialect. Until here the
     * call had the name that is safe in all of them.
     */
    private static void nameAs(Outermost here, Object statement, SqlDialect dialect) {
        String text = here.poolText;
        Integer operation = text == null ? PREPARED.get(statement) : operation(text, dialect);
        if (operation != null && operation != here.poolOperation) {
            Recorder.rename(here.poolCall, operation);
        }
        here.forgetPool();
    }

    /**
     * @param call what {@link #enter} answered; @param batch rows of a batch, 0 if it was none
     */
    public static void exit(int call, int batch, Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.STATEMENT);
        Outermost.here().forgetPool();
        if (batch > 0) {
            Recorder.attribute(call, "db.batch", batch);
        }
        if (thrown == null) {
            Recorder.exit(call);
        } else {
            Recorder.exitFailed(call, thrown);
        }
    }

    private static int operation(String text, SqlDialect dialect) {
        Integer known = TEXTS.operation(text, dialect);
        if (known != null) {
            return known;
        }
        int operation = Recorder.operation(Operations.DATABASE, Sql.shape(text, dialect));
        TEXTS.remember(text, dialect, operation);
        return operation;
    }
}
