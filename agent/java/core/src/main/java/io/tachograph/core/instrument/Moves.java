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
 * Operations that the agent itself has aggregated because they are called too often, or has
 * switched off because they cost too much. Such a move holds until a newer rule of the server
 * decides the method. The rule then holds until the agent moves the method again.
 *
 * <p>Before: {@code Limits} and {@code TraceKeeper} of {@code io.tachograph.core.cost}, which
 * decide. After: {@link Decision}, and {@link Switchboard}, which retransforms.
 */
public final class Moves {
    /** Name of the move that reports an exceeded budget when no method is left to switch off. */
    public static final String ALL = "(all)";

    /** Name of the move that reports that some traces are not recorded. */
    public static final String TRACES = "(traces)";

    private static final int ALL_OPERATION = 0;
    private static final int TRACES_OPERATION = -1;
    private static final AgentEvents EVENTS = AgentEventsRecords.get();

    private final Map<Integer, Move> moved = new ConcurrentHashMap<>();
    private final AgentLog log;
    private volatile Runnable follow = () -> {};
    private volatile Runnable tell = () -> {};

    static final class Move {
        final String operation;
        final State state;
        final String reason;

        /** Time of the move, {@code System.nanoTime()}. */
        final long at;

        /** Time of the move, ns since the Unix epoch. */
        final long since;

        Move(String operation, State state, String reason) {
            Instant now = Instant.now();
            this.operation = operation;
            this.state = state;
            this.reason = reason;
            this.at = System.nanoTime();
            this.since = now.getEpochSecond() * 1_000_000_000L + now.getNano();
        }
    }

    public Moves(AgentLog log) {
        this.log = log;
    }

    /**
     * Sets the listeners, which any thread may call.
     *
     * @param follow called when an operation is moved, so that byte code must change
     * @param tell called when {@link #ALL} or {@link #TRACES} is reported or withdrawn; the byte
     *     code stays the same
     */
    void listen(Runnable follow, Runnable tell) {
        this.follow = follow;
        this.tell = tell;
    }

    /** @param operation id from {@link Operations} */
    public void aggregate(int operation, String reason) {
        move(operation, State.AGGREGATE, "aggregated from now on: ", reason);
    }

    /** @param operation id from {@link Operations} */
    public void switchOff(int operation, String reason) {
        move(operation, State.OFF, "switched off from now on: ", reason);
    }

    private void move(int operation, State state, String line, String reason) {
        Operations.Entry entry = Operations.shared().entry(operation);
        if (entry != null) {
            Move move = new Move(entry.name, state, reason);
            add(operation, move, line + move.operation + ": " + reason, follow);
        }
    }

    /** Reports that the budget is exceeded and no method is left to switch off. */
    public void exhausted(String reason) {
        String line = reason + ": no method is left to switch off";
        add(ALL_OPERATION, new Move(ALL, State.RECORD, reason), line, tell);
    }

    public void excludeTraces(String reason) {
        String line = "some traces are not recorded from now on: " + reason;
        add(TRACES_OPERATION, new Move(TRACES, State.RECORD, reason), line, tell);
    }

    public void keepTraces() {
        if (moved.remove(TRACES_OPERATION) != null) {
            log.say("all traces are recorded again");
            tell.run();
        }
    }

    private void add(int operation, Move move, String line, Runnable listener) {
        Move before = moved.get(operation);
        if (before == null || before.state != move.state) {
            moved.put(operation, move);
            log.say(line);
            EVENTS.moved(move.operation, move.reason);
            listener.run();
        }
    }

    /** Withdraws the report of {@link #exhausted}, if there is one. */
    public void relieved() {
        if (moved.remove(ALL_OPERATION) != null) {
            tell.run();
        }
    }

    public boolean isMoved(int operation) {
        return moved.containsKey(operation);
    }

    public boolean isOff(int operation) {
        Move move = moved.get(operation);
        return move != null && move.state == State.OFF;
    }

    /**
     * Returns the state of a method that the rule decides. Deletes the move of the method if the
     * rule comes from the server and is newer than the move.
     */
    State state(Rule rule, int operation) {
        Move move = moved.get(operation);
        if (move == null) {
            return rule.state;
        }
        if (rule.fromServer && rule.since - move.at > 0) {
            moved.remove(operation, move);
            return rule.state;
        }
        return move.state;
    }

    /** Number of moved operations, without {@link #ALL} and {@link #TRACES}. */
    public int size() {
        return (int) moved.keySet().stream().filter(operation -> operation > 0).count();
    }

    /** Newest first. */
    List<Move> all() {
        List<Move> sorted = new ArrayList<>(moved.values());
        sorted.sort(Comparator.comparingLong((Move move) -> move.at).reversed());
        return sorted;
    }
}
