package io.tachograph.bootstrap.probe;

import io.tachograph.bootstrap.Operations;
import io.tachograph.bootstrap.Recorder;

import java.util.concurrent.ConcurrentHashMap;

/**
 * SQL statements: which operation is it, how long did it take. The text of a prepared one is read
 * when it is prepared; to execute it again costs a look-up and no allocation.
 */
public final class Statements {
    /**
     * Texts whose operation is remembered. A program that writes values into its texts has any
     * number.
     */
    private static final int TEXTS_MAX = 4_096;

    private static final int TEXT_CHARS_MAX = 4_096;
    private static final int PREPARED_MAX = 65_536;

    /** Prepared before it was watched, or made in a way that is not watched. */
    private static final String UNKNOWN = "(prepared statement)";

    private static final ConcurrentHashMap<String, Integer> TEXTS = new ConcurrentHashMap<>();
    private static final WeakIdentityMap<Integer> PREPARED = new WeakIdentityMap<>(PREPARED_MAX);

    private Statements() {}

    /** A statement was prepared. */
    public static void learn(Object statement, String text) {
        if (statement != null && text != null) {
            PREPARED.put(statement, operation(text));
        }
    }

    /** A text was added to a statement's batch: the first one names it. */
    public static void learnBatch(Object statement, String text) {
        if (PREPARED.get(statement) == null) {
            learn(statement, text);
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
        if (!Outermost.enter(Outermost.STATEMENT)) {
            return Outermost.INSIDE;
        }
        Integer known = text == null ? PREPARED.get(statement) : null;
        return Recorder.enter(known != null ? known : operation(text == null ? UNKNOWN : text));
    }

    /**
     * @param call what {@link #enter} answered; @param batch rows of a batch, 0 if it was none
     */
    public static void exit(int call, int batch, Throwable thrown) {
        if (call == Outermost.INSIDE) {
            return;
        }
        Outermost.leave(Outermost.STATEMENT);
        if (batch > 0) {
            Recorder.attribute(call, "db.batch", batch);
        }
        if (thrown == null) {
            Recorder.exit(call);
        } else {
            Recorder.exitFailed(call, thrown);
        }
    }

    private static int operation(String text) {
        Integer known = TEXTS.get(text);
        if (known != null) {
            return known;
        }
        int operation = Recorder.operation(Operations.DATABASE, Sql.shape(text));
        if (TEXTS.size() < TEXTS_MAX && text.length() <= TEXT_CHARS_MAX) {
            TEXTS.put(text, operation);
        }
        return operation;
    }
}
