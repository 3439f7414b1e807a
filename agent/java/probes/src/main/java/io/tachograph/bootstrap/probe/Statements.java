package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

/**
 * SQL statements. The text of a prepared statement is parsed when the statement is prepared. Its
 * execution costs a look-up and no allocation.
 */
public final class Statements {
    /** Total size of the stored texts: at most 8 MiB, or 4 MiB if all are Latin-1. */
    private static final long TEXTS_CHARS_MAX = 4 << 20;

    private static final int PREPARED_MAX = 65_536;

    /**
     * Name of a prepared statement or a batch without a known text, for example if it was prepared
     * before the probe was installed.
     */
    private static final String UNKNOWN = "(prepared statement)";

    private static final StatementTexts TEXTS = new StatementTexts(TEXTS_CHARS_MAX);

    private static final WeakIdentityMap<Integer> PREPARED = new WeakIdentityMap<>(PREPARED_MAX);

    private Statements() {}

    /**
     * Begins to prepare a statement. The driver's connection, which a pool's connection calls,
     * determines the dialect.
     *
     * @return true for the outermost connection; {@link #leavePrepare} must follow
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

    /** Ends the preparation by the outermost connection. @param statement null if it failed */
    public static void leavePrepare(Object statement, String text) {
        Outermost.leave(Outermost.PREPARE);
        learn(statement, text, Outermost.here().preparing);
    }

    private static void learn(Object statement, String text, SqlDialect dialect) {
        if (statement != null && text != null) {
            PREPARED.put(statement, operation(text, dialect));
        }
    }

    /**
     * Notes a text that was added to a batch. The first text names all batches of the statement.
     */
    public static void learnBatch(Object statement, String text) {
        if (PREPARED.get(statement) == null) {
            learn(statement, text, SqlDialect.of(statement.getClass()));
        }
    }

    public static void forget(Object statement) {
        if (!PREPARED.isEmpty()) {
            PREPARED.remove(statement);
        }
    }

    /**
     * @param text the SQL text; null for a prepared statement or a batch
     * @return the token of the call
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
     * Renames the call when a pool's statement executes the driver's statement, which determines
     * the dialect. The earlier name comes from {@code SqlDialect.OTHER} and contains no literal of
     * any dialect.
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
     * @param call the result of {@link #enter}
     * @param batch number of statements or rows of a batch; 0 if the call is not a batch
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
