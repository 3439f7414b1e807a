package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * The calls of one thread, on their way to the sender. <b>The stream is always a forest</b>: a call
 * is entered only if its exit, and those of all open calls, fit too; otherwise the call and all its
 * callees are dropped and counted, and recording continues with its caller.
 *
 * <p>A call is identified by a <i>token</i>: the depth at which it was entered, from 1; negative
 * for a call that is not recorded; 0 for an unknown one. A token that is not the innermost open
 * call means that exits were missed (an exit can overflow the stack); they are added as failed.
 *
 * <p>Before: {@link Recorder}. After: {@code io.tachograph.core.send.RingReader}.
 */
public final class ThreadBuffer extends Ring {
    /**
     * Segment numbers are taken from the shared counter in blocks, so that threads rarely contend
     * for it.
     */
    private static final int SEGMENT_BLOCK = 1_024;

    /**
     * A call's number must stay a positive int, also between two checks for room; past this, calls
     * are dropped.
     */
    private static final int CALLS_MAX = Integer.MAX_VALUE - (1 << 25);

    private static final int DEPTH_FIRST = 256;

    private static final long BLOCK_STEP_NANOS = 100_000;

    /**
     * Slot of the buffer shared by all threads without one: it has no state, {@link Bufferless} has
     * it.
     */
    static final int NOBODYS = -1;

    /** Slot of the placeholder used when no buffer could be lent to a call without a thread. */
    static final int NOT_LENT = -2;

    private final boolean borrowed;
    private final RecordCursor records = new RecordCursor(this);

    /** Position of this buffer in its pool. */
    final int slot;

    // Written by the thread that holds the buffer.

    /**
     * If head + depth reaches this, {@link #admit} checks for room. Lowest value while calls are
     * not recorded.
     */
    private long look;

    int depth;
    private int calls;

    /** For each open call its number (upper half) and operation (lower half). */
    private long[] open;

    private long segment;
    private long segmentEnd;

    /** Open calls that are not recorded, and the depth at which that began. */
    private int skipped;

    private int skippedAt;

    /** Increases with each call that is not recorded although its callers are. */
    private int leftOutNumber;

    /**
     * Number of such a call that was given up: it no longer suppresses calls. Written by the
     * sender.
     */
    private volatile int givenUp;

    private boolean blockedInVain;
    private Context attached;
    private Context parent;

    /** Lent to a call without a thread: the buffer does not return itself. */
    private boolean isLent;

    private String nameWritten;

    private final AttributeWriter attributes = new AttributeWriter(this);
    private final Tallies tallies;

    /** Selects the traces to record; null if all are. */
    private final TraceGate gate;

    /** The unrecorded part is a whole trace, by decision of the gate. */
    private boolean leavesTraceOut;

    // Read by the sender at any time.
    private volatile Thread owner;
    private volatile long callsDropped;

    /**
     * @param home the owning set
     * @param slot position there, or {@link #NOBODYS}, {@link #NOT_LENT}
     * @param words size of the ring, a power of two; 0 creates a buffer that drops everything
     * @param borrowed returned at the end of each outermost call (virtual threads)
     */
    ThreadBuffer(Buffers home, int slot, int words, boolean borrowed) {
        super(home, words);
        this.slot = slot;
        this.borrowed = borrowed;
        this.open = new long[slot < 0 ? 0 : DEPTH_FIRST];
        this.tallies = new Tallies(home.pairs());
        this.gate = home.traces() == null || slot < 0 ? null : new TraceGate(home, seed());
        this.look = Long.MIN_VALUE;
    }

    private long seed() {
        return home.session().low() + 2L * slot + (borrowed ? 1 : 0);
    }

    // ---- calls: the hot path ----

    /**
     * Records that a call begins.
     *
     * @param operation id from {@link Operations}
     * @return the token to hand to {@link #exit}
     */
    public int enter(int operation) {
        int at = depth;
        if (head + at >= look && !admit()) {
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
     * Records that a call ended with an exception. No code of the exception runs here: the sender
     * reads its class and message.
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
     * Counts a call instead of recording it: no word is written to the ring. The recorded calls
     * inside it are children of the enclosing recorded call.
     *
     * @param operation id from {@link Operations}
     * @return the token to hand to {@link #exitCounted}
     */
    public int enterCounted(int operation) {
        if (slot < 0) {
            return skip(operation); // the count would never be read
        }
        int at = leavesTraceOut ? skipped : depth;
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
     * True if there is room for one more call, its exit, and the exits of all open calls. Reads the
     * reader's position.
     */
    private boolean admit() {
        if (slot < 0) {
            return false;
        }
        if (skipped > 0 && depth >= skippedAt && leftOutNumber != givenUp || calls >= CALLS_MAX) {
            return false;
        }
        // The caller of the unrecorded calls has ended, or was given up: they are over, even
        // without their exits.
        skipped = 0;
        endTraceLeftOut();
        if (room()) {
            blockedInVain = false;
            return true;
        }
        return home.blockNanos() > 0 && !blockedInVain && ring.length > 1 && block();
    }

    private boolean room() {
        long freed = freed();
        long full = freed + ring.length - MARGIN;
        if (head - freed > ring.length / 2) {
            home.wake();
        }
        long used = head + depth;
        look = Math.min(full, used + (ring.length >> 2));
        return used < full;
    }

    /**
     * The policy {@code block}: waits for room, at most as long as the setting, and once per
     * shortage.
     */
    private boolean block() {
        long until = System.nanoTime() + home.blockNanos();
        while (System.nanoTime() - until < 0) {
            LockSupport.parkNanos(this, BLOCK_STEP_NANOS);
            if (room()) {
                return true;
            }
        }
        blockedInVain = true;
        return false;
    }

    private int skip(int operation) {
        if (slot == NOBODYS) {
            return home.leaveOut();
        }
        if (skipped == 0) {
            skippedAt = depth;
            leftOutNumber++;
        }
        look = Long.MIN_VALUE;
        if (leavesTraceOut) {
            int at = skipped;
            if (at == open.length) {
                open = Arrays.copyOf(open, at * 2);
            }
            open[at] = operation; // the caller of the counted calls inside
            gate.countCall();
        } else {
            callsDropped = callsDropped + 1; // single writer
        }
        return - ++skipped;
    }

    /**
     * Writes the escapes that precede an outermost call. False if there is no room, or the trace is
     * not recorded.
     */
    private boolean begin(int operation) {
        String name = borrowed ? owner.getName() : null;
        boolean isRenamed = name != null && name != nameWritten && !name.equals(nameWritten);
        int needed = (isRenamed ? 1 : 0) + (attached != null ? 1 : 0);
        // Room first: a call without room is dropped before the gate decides about it.
        if (needed > 0 && !objectsFit(needed)) {
            return false;
        }
        if (gate != null) {
            leavesTraceOut = !gate.isKept(operation, attached);
            if (leavesTraceOut) {
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

    /** Runs after the exit of an outermost call. */
    private void end() {
        segment++;
        calls = 0;
        parent = null;
        attributes.end();
        giveBack();
    }

    /** Returns a borrowed buffer that was only inspected. */
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

    /** Handles an exit of a call that is not the innermost open one. */
    private void exitOdd(int call, int kind, Throwable thrown) {
        if (slot == NOBODYS) {
            home.leftOutEnds(call);
        } else if (call < 0) {
            if (-call > skipped) {
                return; // of a call that was given up
            }
            skipped = -call - 1;
            if (skipped == 0) {
                look = head + depth;
                endTraceLeftOut();
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
            settle(); // of a call that never began: the buffer was borrowed for this only
        }
    }

    private void endTraceLeftOut() {
        if (leavesTraceOut) {
            leavesTraceOut = false;
            gate.close();
        }
    }

    /**
     * The token of the innermost open call, for byte code that cannot keep one (constructors).
     *
     * @param operation the expected operation of that call
     * @return 0 if there is no such call
     */
    int innermost(int operation) {
        if (slot == NOBODYS) {
            return -home.leftOut();
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

    /** Adds text to a call. Ignored unless it is the innermost open one. */
    public void attribute(int call, String key, String value) {
        if (call > 0 && call == depth && key != null && value != null) {
            attributes.text(key, value);
        }
    }

    /** Adds a number to a call. Ignored unless it is the innermost open one. */
    public void attribute(int call, String key, long value) {
        if (call > 0 && call == depth && key != null) {
            attributes.number(key, value);
        }
    }

    /** Changes the operation of an open call. */
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
     * The outermost call continues without this thread.
     *
     * @return false if it cannot, or has already ended: the call stays open here
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
     * The innermost recorded open call of this thread, else the trace that is not recorded, else
     * the attached context, else null.
     */
    public Context context() {
        if (depth == 0) {
            return leavesTraceOut && skipped > 0 ? gate.context() : attached;
        }
        long span = Session.mix64(home.session().base(segment) + (open[depth - 1] >>> 32));
        if (parent != null) {
            return Context.local(parent.traceHigh(), parent.traceLow(), span, parent.segment());
        }
        return Context.local(
                home.session().high(), home.session().traceLow(segment), span, segment);
    }

    /**
     * Makes {@code context} the parent of the next outermost calls. @return the previous parent,
     * may be null
     */
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

    /**
     * Assigns the buffer to a thread; its earlier content consists of complete calls.
     *
     * @param isLent for a call that may end without it
     */
    void own(Thread thread, boolean isLent) {
        this.isLent = isLent; // first: a reader that sees the owner sees this too
        attached = null;
        owner = thread;
    }

    /**
     * Resets the buffer after its thread ended, perhaps with calls open; the reader has closed them
     * on its side.
     */
    void reset() {
        depth = 0;
        calls = 0;
        skipped = 0;
        look = Long.MIN_VALUE;
        segment = segmentEnd;
        parent = null;
        attributes.end();
        endTraceLeftOut();
        tallies.close();
        disown();
    }

    /**
     * Lent for one outermost call at a time, so {@link #owner} may have changed since a word was
     * written.
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
     * Number of the thread's outermost call if it is not recorded and was not given up, else 0. The
     * value may be slightly stale. Always 0 for a borrowed buffer: giving up its call would return
     * the buffer while the exit of that call is still to come.
     */
    public int outermostLeftOut() {
        int number = leftOutNumber;
        return !borrowed && skipped > 0 && depth == 0 && number != givenUp ? number : 0;
    }

    /**
     * Gives up an outermost call that has been unrecorded for so long that its exit may be lost;
     * without this, the thread would never record again. The next call is an outermost one. Called
     * by the sender, without a lock; no effect if the call has ended in the meantime.
     *
     * @param number the result of {@link #outermostLeftOut}
     */
    public void endLeftOut(int number) {
        givenUp = number;
    }

    /** Counted calls since the buffer exists. */
    public Tallies tallies() {
        return tallies;
    }

    /** The counts of traces; null if all are recorded. */
    public TraceGate gate() {
        return gate;
    }

    /**
     * The thread has ended without returning the buffer. For a borrowed buffer, the exit of the
     * outermost call was lost.
     */
    public boolean hasLostOwner() {
        Thread before = owner;
        // Checked again: the buffer may have been returned, and taken by another thread, before its
        // thread ended.
        return before != null && !before.isAlive() && owner == before && !isLent;
    }

    /** The thread that writes here now; null if there is none. */
    public Thread owner() {
        return owner;
    }

    /** Calls dropped because the ring was full, since the buffer exists. */
    public long callsDropped() {
        return callsDropped;
    }

    public RecordCursor records() {
        return records;
    }

    /** Attributes dropped because the ring was full, since the buffer exists. */
    public long attributesDropped() {
        return attributes.dropped();
    }
}
