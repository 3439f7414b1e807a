package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * Records the calls of one thread for the sender. <b>The stream of events is always a forest</b>: a
 * call is entered only if its exit and the exits of all open calls also fit. Otherwise the call and
 * its callees are dropped and counted, until the call ends or the sender gives up the call ({@link
 * #endUnrecorded}).
 *
 * <p>A <i>token</i> identifies a call. It is the depth of the call, from 1; a negative number if
 * the call is not recorded; 0 if the call is unknown. An exit with the token of an outer call means
 * that exits of inner calls were missed, because an exit can overflow the stack. The missed exits
 * are added, as failed.
 *
 * <p>Before: {@link Recorder}. After: {@code io.tachograph.core.send.RingReader}.
 */
public final class ThreadBuffer extends Ring {
    /**
     * Each thread takes segment numbers from the shared counter in blocks of this size, so that
     * threads rarely contend for the counter.
     */
    private static final int SEGMENT_BLOCK = 1_024;

    /**
     * Maximum number of calls in a segment; further calls are dropped. The bound is below the
     * largest int, because some more calls are recorded until the next check for space.
     */
    private static final int CALLS_MAX = Integer.MAX_VALUE - (1 << 25);

    private static final int DEPTH_FIRST = 256;

    private static final long BLOCK_STEP_NANOS = 100_000;

    /**
     * Slot of the placeholder that all threads without a buffer share. The state of such a thread
     * is in {@link Bufferless}.
     */
    static final int UNASSIGNED = -1;

    /** Slot of the placeholder for a {@link HandedCall} to which no buffer could be lent. */
    static final int NOT_LENT = -2;

    private final boolean borrowed;
    private final RecordCursor records = new RecordCursor(this);

    /** Position of this buffer in its pool; negative for a buffer without a pool. */
    final int slot;

    // Written by the thread that holds the buffer, and by `reset` after that thread has ended. Only
    // the sender writes `givenUp`.

    /**
     * {@link #enter} calls {@link #admit} when head + depth reaches this value. It is the lowest
     * long while calls are not recorded.
     */
    private long checkAt;

    int depth;
    private int calls;

    // Number in the segment (upper half) and operation (lower half) of each open recorded call. In
    // a trace that the gate excluded: the operation of each open call.
    private long[] open;

    private long segment;
    private long segmentEnd;

    /** Number of open calls that are not recorded. */
    private int skipped;

    private int skippedAt;

    /** Serial number of the latest unrecorded call that is not inside another unrecorded one. */
    private int unrecordedNumber;

    /**
     * Serial number of the latest unrecorded call that the sender has given up, so that its callees
     * may be recorded.
     */
    private volatile int givenUp;

    private boolean blockTimedOut;
    private Context attached;
    private Context parent;

    /** True if the buffer is lent to a {@link HandedCall}, which returns it. */
    private boolean isLent;

    private String nameWritten;

    private final AttributeWriter attributes = new AttributeWriter(this);
    private final Tallies tallies;

    /** Null if all traces are recorded. */
    private final TraceGate gate;

    /** True if the open unrecorded calls are a whole trace that the gate excluded. */
    private boolean isUnsampled;

    // The sender may read these fields at any time.
    private volatile Thread owner;
    private volatile long callsDropped;

    /**
     * @param home the set to which the buffer belongs
     * @param slot position in its pool, or {@link #UNASSIGNED}, {@link #NOT_LENT}
     * @param words size of the ring, a power of two; 0 creates a buffer that drops everything
     * @param borrowed true if a virtual thread or a {@link HandedCall} gets the buffer for one
     *     outermost call at a time; false if a platform thread keeps it
     */
    ThreadBuffer(Buffers home, int slot, int words, boolean borrowed) {
        super(home, words);
        this.slot = slot;
        this.borrowed = borrowed;
        this.open = new long[slot < 0 ? 0 : DEPTH_FIRST];
        this.tallies = new Tallies(home.pairs());
        this.gate = home.traces() == null || slot < 0 ? null : new TraceGate(home, seed());
        this.checkAt = Long.MIN_VALUE;
    }

    private long seed() {
        return home.session().low() + 2L * slot + (borrowed ? 1 : 0);
    }

    // ---- calls: the hot path ----

    /**
     * Records the start of a call.
     *
     * @param operation id from {@link Operations}
     * @return the token for {@link #exit}
     */
    public int enter(int operation) {
        int at = depth;
        if (head + at >= checkAt && !admit()) {
            return skip(operation);
        }
        if (at == 0 && !begin(operation)) {
            return skip(operation);
        }
        if (at == open.length) {
            open = Arrays.copyOf(open, at * 2);
        }
        publish(Word.enter(System.nanoTime(), operation));
        open[at] = (long) calls++ << 32 | operation;
        depth = at + 1;
        return at + 1;
    }

    /** Records that a call returned. @param call the result of {@link #enter} */
    public void exit(int call) {
        if (call != depth || call == 0) {
            exitOdd(call, Word.EXIT, null);
            return;
        }
        publish(Word.exit(System.nanoTime(), Word.EXIT));
        depth = call - 1;
        if (call == 1) {
            end();
        }
    }

    /**
     * Records that a call ended as failed. This method calls none of the exception's methods.
     *
     * @param call the result of {@link #enter}
     * @param thrown may be null if only the failure is known
     */
    public void exitFailed(int call, Throwable thrown) {
        if (call != depth || call == 0) {
            exitOdd(call, Word.EXIT_FAILED, thrown);
            return;
        }
        long now = System.nanoTime();
        attributes.exception(thrown, call);
        publish(Word.exit(now, Word.EXIT_FAILED));
        depth = call - 1;
        if (call == 1) {
            end();
        }
    }

    /**
     * Begins a call that is counted instead of recorded: no word is written to the ring. Recorded
     * calls inside it are children of the enclosing recorded call.
     *
     * @param operation id from {@link Operations}
     * @return the token for {@link #exitCounted}
     */
    public int enterCounted(int operation) {
        if (slot < 0) {
            return skip(operation); // the sender does not read the counts of this buffer
        }
        int at = isUnsampled ? skipped : depth;
        return tallies.enter(operation, at, at == 0 ? 0 : (int) open[at - 1]);
    }

    /** Ends a counted call. @param call the result of {@link #enterCounted} */
    public void exitCounted(int call, boolean failed) {
        long now = System.nanoTime();
        if (call < 0) {
            exitOdd(call, Word.EXIT, null);
            return;
        }
        tallies.exit(call, now, failed);
        if (borrowed) {
            settle();
        }
    }

    // ---- calls: the rare paths ----

    /**
     * True if a call may be recorded: it is not inside an unrecorded call, its segment is not too
     * long, and the ring has space for the call with its exit, and for the exits of all open calls.
     * Under the policy {@code block}, waits for space.
     */
    private boolean admit() {
        if (slot < 0) {
            return false;
        }
        if (skipped > 0 && depth >= skippedAt && unrecordedNumber != givenUp || calls >= CALLS_MAX) {
            return false;
        }
        // The caller of any open unrecorded calls has ended, or the sender has given them up. So
        // they count as ended, although their exits are missing.
        skipped = 0;
        endUnsampledTrace();
        if (room()) {
            blockTimedOut = false;
            return true;
        }
        return home.blockNanos() > 0 && !blockTimedOut && ring.length > 1 && block();
    }

    private boolean room() {
        long freed = freed();
        long full = freed + ring.length - MARGIN;
        if (head - freed > ring.length / 2) {
            home.wake();
        }
        long used = head + depth;
        checkAt = Math.min(full, used + (ring.length >> 2));
        return used < full;
    }

    /**
     * Waits for space under the policy {@code block}, at most {@code block_max}. After a wait
     * without success, calls are dropped without a wait until there is space again.
     */
    private boolean block() {
        long until = System.nanoTime() + home.blockNanos();
        while (System.nanoTime() - until < 0) {
            LockSupport.parkNanos(this, BLOCK_STEP_NANOS);
            if (room()) {
                return true;
            }
        }
        blockTimedOut = true;
        return false;
    }

    private int skip(int operation) {
        if (slot == UNASSIGNED) {
            return home.drop();
        }
        if (skipped == 0) {
            skippedAt = depth;
            unrecordedNumber++;
        }
        checkAt = Long.MIN_VALUE;
        if (isUnsampled) {
            int at = skipped;
            if (at == open.length) {
                open = Arrays.copyOf(open, at * 2);
            }
            open[at] = operation; // the caller of counted calls inside this call
            gate.countCall();
        } else {
            callsDropped = callsDropped + 1; // single writer
        }
        return - ++skipped;
    }

    /** Writes the escapes before an outermost call. Returns false if the call is not recorded. */
    private boolean begin(int operation) {
        String name = borrowed ? owner.getName() : null;
        boolean isRenamed = name != null && name != nameWritten && !name.equals(nameWritten);
        int needed = (isRenamed ? 1 : 0) + (attached != null ? 1 : 0);
        // Space is checked first: the gate must not decide about a call that is dropped.
        if (needed > 0 && !objectsFit(needed)) {
            return false;
        }
        if (gate != null) {
            isUnsampled = !gate.isKept(operation, attached);
            if (isUnsampled) {
                return false;
            }
        }
        if (isRenamed) {
            publish(Word.escape(Word.THREAD), name);
            nameWritten = name;
        }
        if (attached != null) {
            publish(Word.escape(Word.PARENT), attached);
        }
        parent = attached;
        if (segment == segmentEnd) {
            long first = home.takeSegments(SEGMENT_BLOCK);
            publishPair(Word.escape(Word.SEGMENT_NUMBER), first);
            segment = first;
            segmentEnd = first + SEGMENT_BLOCK;
        }
        return true;
    }

    /** Runs when the outermost call has ended, or this thread has left the call. */
    private void end() {
        segment++;
        calls = 0;
        parent = null;
        attributes.end();
        giveBack();
    }

    /** Returns a borrowed buffer if the thread has no open call. */
    void settle() {
        if (depth == 0 && skipped == 0) {
            giveBack();
        }
    }

    private void giveBack() {
        if (borrowed && !isLent && !tallies.isOpen()) {
            home.giveBack(this);
        }
    }

    /** Handles the exit of a call that is not recorded, or is not the innermost open one. */
    private void exitOdd(int call, int kind, Throwable thrown) {
        if (slot == UNASSIGNED) {
            home.droppedEnds(call);
        } else if (call < 0) {
            if (-call > skipped) {
                return; // the call already counts as ended, for example because it was given up
            }
            skipped = -call - 1;
            if (skipped == 0) {
                checkAt = head + depth;
                endUnsampledTrace();
                if (depth == 0) {
                    giveBack();
                }
            }
        } else if (call > 0 && call < depth) {
            long now = System.nanoTime();
            while (depth > call) {
                publish(Word.exit(now, Word.EXIT_FAILED));
                depth--;
            }
            attributes.exception(thrown, call);
            publish(Word.exit(now, kind));
            depth = call - 1;
            if (call == 1) {
                end();
            }
        } else {
            // The call is not open. A buffer that was borrowed only for this exit is returned.
            settle();
        }
    }

    private void endUnsampledTrace() {
        if (isUnsampled) {
            isUnsampled = false;
            gate.close();
        }
    }

    /**
     * The token of the innermost open call of this operation, for byte code that cannot keep a
     * token (constructors). If the innermost open call is unrecorded, its token is returned
     * for any operation.
     *
     * @param operation id from {@link Operations}
     * @return 0 if there is no such call
     */
    int innermost(int operation) {
        if (slot == UNASSIGNED) {
            return -home.openDropped();
        }
        if (skipped > 0 && depth == skippedAt) {
            return -skipped;
        }
        for (int at = depth; at > 0; at--) {
            if ((int) open[at - 1] == operation) {
                return at;
            }
        }
        return 0;
    }

    /** As {@link #innermost}, for counted calls. */
    int innermostCounted(int operation) {
        return slot < 0 ? innermost(operation) : tallies.innermost(operation);
    }

    // ---- attributes and contexts ----

    /** Adds a text to a call. Ignored if the call is not the innermost open one. */
    public void attribute(int call, String key, String value) {
        if (call > 0 && call == depth && key != null && value != null) {
            attributes.text(key, value);
        }
    }

    /** Adds a number to a call. Ignored if the call is not the innermost open one. */
    public void attribute(int call, String key, long value) {
        if (call > 0 && call == depth && key != null) {
            attributes.number(key, value);
        }
    }

    public void rename(int call, int operation) {
        if (call <= 0 || call > depth || (int) open[call - 1] == operation) {
            return;
        }
        if (wordsFit(2)) {
            publishPair(Word.escape(Word.OPERATION), (long) call << 32 | operation);
            open[call - 1] = open[call - 1] & -1L << 32 | operation;
        } else {
            attributes.drop();
        }
    }

    /**
     * Ends the part of the outermost call that runs on this thread. The call itself continues.
     *
     * @return false if the call cannot continue without this thread, or has already ended; this
     *     thread must then record the exit
     */
    public boolean leave(int call, HandedCall handed) {
        boolean isLeft =
                call == 1
                        && depth == 1
                        && wordsFit(1)
                        && objectsFit(1)
                        && handed.leave();
        if (isLeft) {
            publish(Word.escape(Word.HANDED), handed);
            depth = 0;
            end();
        }
        return isLeft;
    }

    /**
     * The parent for calls that this thread causes: the innermost recorded open call; else the
     * current unrecorded trace; else the attached context, which may be null.
     */
    public Context context() {
        if (depth == 0) {
            return isUnsampled && skipped > 0 ? gate.context() : attached;
        }
        long span = Session.mix64(home.session().base(segment) + (open[depth - 1] >>> 32));
        if (parent != null) {
            return Context.local(parent.traceHigh(), parent.traceLow(), span, parent.segment());
        }
        return Context.local(
                home.session().high(), home.session().traceLow(segment), span, segment);
    }

    /** Makes {@code context} the parent of the next outermost calls. @return the previous one */
    Context attach(Context context) {
        Context before = attached;
        attached = context;
        return before;
    }

    boolean wordsFit(int words) {
        long full = freed() + ring.length - MARGIN;
        return skipped == 0 && head + depth + words < full;
    }

    // ---- life cycle of a buffer ----

    /** @param isLent true if the buffer is for a call that may end on another thread */
    void own(Thread thread, boolean isLent) {
        this.isLent = isLent; // first: a reader that sees the new owner also sees this value
        attached = null;
        owner = thread;
    }

    /**
     * Resets the buffer after its thread has ended, perhaps with open calls. The reader has already
     * closed these calls on its side.
     */
    void reset() {
        depth = 0;
        calls = 0;
        skipped = 0;
        checkAt = Long.MIN_VALUE;
        segment = segmentEnd;
        parent = null;
        attributes.end();
        endUnsampledTrace();
        tallies.close();
        disown();
    }

    /**
     * True if a thread holds the buffer only for one outermost call at a time. {@link #owner} may
     * have changed since a word was written.
     */
    public boolean isBorrowed() {
        return borrowed;
    }

    void disown() {
        attached = null;
        owner = null;
    }

    // ---- for the sender ----

    /**
     * Serial number of the thread's outermost call, if that call is not recorded and was not given
     * up; else 0. The value may be slightly stale. The result for a borrowed buffer is 0, because
     * giving up its call would return the buffer before the exit of that call.
     */
    public int outermostUnrecorded() {
        int number = unrecordedNumber;
        return !borrowed && skipped > 0 && depth == 0 && number != givenUp ? number : 0;
    }

    /**
     * Gives up an unrecorded outermost call that has been open for so long that its exit may be
     * lost. After a lost exit, the thread would otherwise never record again. The next call of the
     * thread is treated as an outermost call. If the call has ended in the meantime, this method
     * has no effect.
     *
     * @param number the result of {@link #outermostUnrecorded}
     */
    public void endUnrecorded(int number) {
        givenUp = number;
    }

    /** The counted calls since the buffer was created. */
    public Tallies tallies() {
        return tallies;
    }

    /** The counts of traces; null if all traces are recorded. */
    public TraceGate gate() {
        return gate;
    }

    /**
     * True if the thread has ended without returning the buffer. For a borrowed buffer this means
     * that the exit of the outermost call was lost. Always false for a buffer that is lent to a
     * {@link HandedCall}.
     */
    public boolean hasLostOwner() {
        Thread before = owner;
        // The owner is read again, because the buffer may have been returned and assigned to
        // another thread before the first owner ended.
        return before != null && !before.isAlive() && owner == before && !isLent;
    }

    /** The thread that writes to this buffer; null if there is none. */
    public Thread owner() {
        return owner;
    }

    public long callsDropped() {
        return callsDropped;
    }

    public RecordCursor records() {
        return records;
    }

    /** Number of attributes and changes of an operation dropped since the buffer was created. */
    public long attributesDropped() {
        return attributes.dropped();
    }
}
