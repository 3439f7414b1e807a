package io.tachograph.core.instrument;

import io.tachograph.bootstrap.Operations;
import io.tachograph.core.log.AgentLog;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Operations that the agent itself moved from records to counts, because they are too many or cost
 * too much. A move holds until a rule of the server that is newer decides the method: a person has
 * the last word, until the limit is exceeded again.
 *
 * <p>Before: {@code io.tachograph.core.cost.Limits}, which decides. After: {@link Decision}, {@link
 * Switchboard}, which retransforms.
 */
public final class Moves {
    /** Said of all operations together: nothing is left to move. */
    public static final String ALL = "(all)";

    /** Said of traces: not all of them are kept. */
    public static final String TRACES = "(traces)";

    private static final int ALL_OPERATION = 0;
    private static final int TRACES_OPERATION = -1;
    private static final AgentEvents EVENTS = AgentEventsRecords.get();

    private final Map<Integer, Move> moved = new ConcurrentHashMap<>();
    private final AgentLog log;
    private volatile Runnable follow = () -> {};
    private volatile Runnable tell = () -> {};

    /** One operation. */
    static final class Move {
        final String operation;
        final String reason;

        /** {@code System.nanoTime()}. */
        final long at;

        /** ns since the Unix epoch. */
        final long since;

        Move(String operation, String reason) {
            Instant now = Instant.now();
            this.operation = operation;
            this.reason = reason;
            this.at = System.nanoTime();
            this.since = now.getEpochSecond() * 1_000_000_000L + now.getNano();
        }
    }

    public Moves(AgentLog log) {
        this.log = log;
    }

    /**
     * From any thread.
     *
     * @param follow run when operations are moved
     * @param tell run when {@link #all} says something else in any other way
     */
    void listen(Runnable follow, Runnable tell) {
        this.follow = follow;
        this.tell = tell;
    }

    /**
     * From now on calls of the operation are counted.
     *
     * @param operation id from {@link Operations}
     */
    public void move(int operation, String reason) {
        Operations.Entry entry = Operations.shared().entry(operation);
        if (entry != null) {
            Move move = new Move(entry.name, reason);
            add(
                    operation,
                    move,
                    "aggregated from now on: " + move.operation + ": " + reason,
                    follow);
        }
    }

    /** There is nothing left to move, though there should be. */
    public void exhausted(String reason) {
        String line = reason + ": nothing is left that could be aggregated or left out";
        add(ALL_OPERATION, new Move(ALL, reason), line, tell);
    }

    /** Some traces are left out from now on. */
    public void leaveTracesOut(String reason) {
        String line = "some traces are left out from now on: " + reason;
        add(TRACES_OPERATION, new Move(TRACES, reason), line, tell);
    }

    /** All traces are kept again. */
    public void keepTraces() {
        if (moved.remove(TRACES_OPERATION) != null) {
            log.say("all traces are kept again");
            tell.run();
        }
    }

    private void add(int operation, Move move, String line, Runnable listener) {
        if (moved.putIfAbsent(operation, move) == null) {
            log.say(line);
            EVENTS.moved(move.operation, move.reason);
            listener.run();
        }
    }

    /** The limit that {@link #exhausted} spoke of is kept again. */
    public void relieved() {
        if (moved.remove(ALL_OPERATION) != null) {
            tell.run();
        }
    }

    public boolean isMoved(int operation) {
        return moved.containsKey(operation);
    }

    /** Does it hold against the rule that decides the method? It ends if not. */
    boolean holdsAgainst(Rule rule, int operation) {
        Move move = moved.get(operation);
        if (move == null) {
            return false;
        }
        if (rule.fromServer && rule.since - move.at > 0) {
            moved.remove(operation, move);
            return false;
        }
        return true;
    }

    /** How many operations are moved. */
    public int size() {
        return (int) moved.keySet().stream().filter(operation -> operation > 0).count();
    }

    /** The newest first. */
    List<Move> all() {
        List<Move> sorted = new ArrayList<>(moved.values());
        sorted.sort(Comparator.comparingLong((Move move) -> move.at).reversed());
        return sorted;
    }
}
