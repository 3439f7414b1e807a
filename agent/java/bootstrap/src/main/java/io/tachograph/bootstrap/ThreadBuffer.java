package io.tachograph.bootstrap;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * The calls of one thread, on their way to the sender. <b>The stream is always a forest</b>: a call
 * is only entered if its exit, and those of all open calls, fit too; if they do not, the call and
 * everything it calls is left out and counted, and recording goes on with its caller.
 *
 * <p>Calls are named by a <i>token</i>: the depth at which they were entered, from 1; negative for
 * a call that was left out; 0 for one that was never seen. A token that is not the innermost open
 * call tells that exits were missed (an exit can run out of stack); they are made up for as failed.
 *
 * <p>Before: {@link Recorder}. After: {@code io.tachograph.core.send.RingReader}.
 */
public final class ThreadBuffer extends Ring {
    /**
     * Segment numbers are taken from the shared counter in blocks, so that threads seldom meet
     * there.
     */
    private static final int SEGMENT_BLOCK = 1_024;

    /**
     * A call's number must stay a positive int, also between two looks for room; past this calls
     * are left out.
     */
    private static final int CALLS_MAX = Integer.MAX_VALUE - (1 << 25);

    private static final int DEPTH_FIRST = 256;

    private static final long BLOCK_STEP_NANOS = 100_000;

    /** Slot of the buffer of all threads that got none: it has no state, {@link Bufferless} has. */
    static final int NOBODYS = -1;

    /** Slot of what stands for a buffer that could not be lent to a call without a thread. */
    static final int NOT_LENT = -2;

    private final boolean borrowed;
    private final RecordCursor records = new RecordCursor(this);

    /** Position of this buffer in its pool. */
    final int slot;

    // Written by the thread that holds the buffer.

    /**
     * If head + depth reaches this, room must be looked for again. Lowest value while calls are
     * being left out.
     */
    private long look;

    int depth;
    private int calls;

    /** For each open call its number (upper half) and operation (lower half). */
    private long[] open;

    private long segment;
    private long segmentEnd;

    /** Calls that are open but left out, and the depth at which that began. */
    private int skipped;

    private int skippedAt;

    /** Rises with each call whose callers are not left out, but it is. */
    private int leftOutNumber;

    /** Number of such a call that is not to leave out anything more. Written by the sender. */
    private volatile int givenUp;

    private boolean blockedInVain;
    private Context attached;
    private Context parent;

    /** To a call without a thread: it does not give itself back. */
    private boolean isLent;

    private String nameWritten;

    private final AttributeWriter attributes = new AttributeWriter(this);
    private final Tallies tallies;

    /** Decides which traces are kept; null where all are. */
    private final TraceGate gate;

    /** What is being left out is a whole trace, which the gate has decided about. */
    private boolean leavesTraceOut;

    // Read by the sender at any time.
    private volatile Thread owner;
    private volatile long callsDropped;

    /**
     * @param home where it came from
     * @param slot position there, or {@link #NOBODYS}, {@link #NOT_LENT}
     * @param words size of the ring, a power of two; 0 makes a buffer that leaves everything out
     * @param borrowed it is given back at the end of each outermost call (virtual threads)
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

    /** Records that a call returned. @param call what {@link #enter} answered */
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
     * Records that a call ended with an exception. Nothing of the exception is run here: the sender
     * reads its class and message.
     *
     * @param call what {@link #enter} answered
     * @param thrown may be null when only the failure is known
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
     * Counts a call instead of recording it: no word goes into the ring. The recorded calls that it
     * makes are children of the recorded call that it is in.
     *
     * @param operation id from {@link Operations}
     * @return the token to hand to {@link #exitCounted}
     */
    public int enterCounted(int operation) {
        if (slot < 0) {
            return skip(operation); // nobody would read the count
        }
        int at = leavesTraceOut ? skipped : depth;
        return tallies.enter(operation, at, at == 0 ? 0 : (int) open[at - 1]);
    }

    /** The end of a call that is counted. @param call what {@link #enterCounted} answered */
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

    // ---- calls: what happens seldom ----

    /**
     * Is there room for one more call, its exit, and the exits of all open calls? Looks at the
     * reader's position.
     */
    private boolean admit() {
        if (slot < 0) {
            return false;
        }
        if (skipped > 0 && depth >= skippedAt && leftOutNumber != givenUp || calls >= CALLS_MAX) {
            return false;
        }
        // The caller of what was left out is gone, or it was given up: over, also without its exit.
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
     * The policy {@code block}: waits for room, but never longer than the setting, and only once
     * for one shortage.
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
            open[at] = operation; // the caller of what is counted inside
            gate.countCall();
        } else {
            callsDropped = callsDropped + 1; // one writer only
        }
        return - ++skipped;
    }

    /**
     * What must be said before an outermost call. False if there is no room to say it, or nothing
     * is to be said of this trace.
     */
    private boolean begin(int operation) {
        String name = borrowed ? owner.getName() : null;
        boolean isRenamed = name != null && name != nameWritten && !name.equals(nameWritten);
        int needed = (isRenamed ? 1 : 0) + (attached != null ? 1 : 0);
        // Room first: what finds none is dropped, and the gate has not decided about it.
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

    /** After the exit of an outermost call. */
    private void end() {
        segment++;
        calls = 0;
        parent = null;
        attributes.end();
        giveBack();
    }

    /** A borrowed buffer that was only looked at goes back at once. */
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

    /** An exit that is not that of the innermost open call. */
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
     * @param operation what the call must be
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

    /** As {@link #innermost}, among the calls that are counted. */
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

    /** An open call turned out to be one of another operation. */
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
     * The outermost call goes on without this thread.
     *
     * @return false if it cannot, or has ended meanwhile: it is open as before
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
     * The innermost recorded open call of this thread, or the trace that is being left out, or what
     * was attached, or null.
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
     * Makes {@code context} the parent of the outermost calls to come. @return what it was before,
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

    // ---- life of a buffer ----

    /**
     * A thread takes the buffer; all of its earlier content was complete calls.
     *
     * @param isLent for a call that may end without it
     */
    void own(Thread thread, boolean isLent) {
        this.isLent = isLent; // first: who sees the owner knows it
        attached = null;
        owner = thread;
    }

    /** The thread ended, perhaps with calls open; the reader has closed them on its side. */
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
     * Number of the outermost call of the thread, if it is being left out and was not given up,
     * else 0. May be a moment old. Always 0 of a borrowed buffer: who gave up the call that holds
     * it would have it given back while that call still has its exit to come.
     */
    public int outermostLeftOut() {
        int number = leftOutNumber;
        return !borrowed && skipped > 0 && depth == 0 && number != givenUp ? number : 0;
    }

    /**
     * An outermost call has been left out for so long that its exit may have been lost, and with it
     * everything that the thread will ever do: the next call is an outermost one. Called by the
     * sender, without a lock; without effect where the call has ended meanwhile.
     *
     * @param number what {@link #outermostLeftOut} answered
     */
    public void endLeftOut(int number) {
        givenUp = number;
    }

    /** What was counted here since the buffer exists. */
    public Tallies tallies() {
        return tallies;
    }

    /** Which traces were kept here; null where all are. */
    public TraceGate gate() {
        return gate;
    }

    /**
     * Its thread has ended without giving it back. Of a borrowed one the exit of the outermost call
     * was lost.
     */
    public boolean hasLostOwner() {
        Thread before = owner;
        // Asked again: it may have been given back, and taken by another, before its thread ended.
        return before != null && !before.isAlive() && owner == before && !isLent;
    }

    /** The thread that writes here now; null when nobody does. */
    public Thread owner() {
        return owner;
    }

    /** Calls left out for want of room, since the buffer exists. */
    public long callsDropped() {
        return callsDropped;
    }

    public RecordCursor records() {
        return records;
    }

    /** Attributes left out for want of room, since the buffer exists. */
    public long attributesDropped() {
        return attributes.dropped();
    }
}
