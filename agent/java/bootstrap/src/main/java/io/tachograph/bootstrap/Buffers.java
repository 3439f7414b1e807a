package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Assigns buffers to threads. A platform thread gets a buffer with its first call or declared
 * record and keeps it for life. A virtual thread borrows a buffer only while it has an outermost
 * call open or writes a declared record, because millions of virtual threads may exist. A thread
 * that only submits or receives tasks needs no buffer. The number of buffers of each kind is
 * bounded. If no buffer is free for a thread, its calls and declared records are dropped and
 * counted.
 */
public final class Buffers {
    /**
     * Maximum number of buffers that are lent at one time to calls which may end on another thread
     * ({@link HandedCall#begin}).
     */
    private static final int LENT_MAX = 256;

    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /**
     * The buffer of each thread. When a thread returns its buffer, the value becomes null and the
     * entry stays, so that the next buffer needs no new entry.
     */
    private final ThreadLocal<ThreadBuffer> local = new ThreadLocal<>();

    private final ThreadLocal<Bufferless> bufferless = new ThreadLocal<>();

    /** Placeholder for all threads without a buffer. */
    private final ThreadBuffer unassigned;

    private final Session session;
    private final BufferPool platform;
    private final BufferPool virtual;
    private final long blockNanos;
    private final CallPairs pairs = new CallPairs(Operations.shared());

    /** Null if all traces are recorded. */
    private final Traces traces;

    private final AtomicLong segments = new AtomicLong(1);
    private final LongAdder droppedWithoutBuffer = new LongAdder();
    private final LongAdder recordsDroppedWithoutBuffer = new LongAdder();
    private final AtomicInteger lent = new AtomicInteger();
    private final AtomicReference<HandedCall> ended = new AtomicReference<>();
    private volatile Thread sleeper;

    /** Sizes and the policy for full rings, fixed before the first call is recorded. */
    public static final class Options {
        /** Number of words in the ring of a platform thread; rounded up to a power of two. */
        public int words = 32_768;

        /**
         * Maximum number of platform threads that are recorded at the same time; rounded up to a
         * multiple of 64.
         */
        public int threadsMax = 1_024;

        /**
         * Number of words in a ring that is lent to a virtual thread or for a {@link HandedCall};
         * rounded up to a power of two.
         */
        public int virtualWords = 2_048;

        /** Maximum number of rings lent at the same time; rounded up to a multiple of 64. */
        public int virtualMax = 1_024;

        /** Longest wait for space in the ring, ns. 0: the call is dropped without a wait. */
        public long blockNanos;

        /** Number of traces to record per second, over all threads ({@link Traces}). 0: all. */
        public long tracesMax;
    }

    public Buffers(Session session, Options options) {
        this.session = session;
        this.blockNanos = options.blockNanos;
        this.traces = options.tracesMax > 0 ? new Traces(options.tracesMax) : null;
        this.platform = new BufferPool(this, options.threadsMax, powerOfTwo(options.words), false);
        this.virtual =
                new BufferPool(this, options.virtualMax, powerOfTwo(options.virtualWords), true);
        this.unassigned = new ThreadBuffer(this, ThreadBuffer.UNASSIGNED, 0, true);
    }

    /** Never null. */
    public ThreadBuffer current() {
        ThreadBuffer buffer = local.get();
        return buffer != null ? buffer : take(Thread.currentThread());
    }

    private ThreadBuffer take(Thread thread) {
        boolean isVirtual = isVirtual(thread);
        Bufferless mine = bufferless.get();
        // Some thread pools clear the thread locals of their threads between tasks, so null does
        // not prove that this thread has no buffer.
        boolean mayHaveOne = !isVirtual && (mine == null || !mine.hasNone);
        ThreadBuffer own = mayHaveOne ? platform.ownedBy(thread) : null;
        ThreadBuffer buffer = own != null ? own : (isVirtual ? virtual : platform).take();
        if (buffer == null) {
            // The thread keeps the placeholder until its outermost call ends. After that, the
            // thread tries again to get a buffer.
            bufferless().hasNone = true;
            local.set(unassigned);
            return unassigned;
        }
        try {
            Context cause = mine == null ? Inheritance.of(thread) : mine.cause(thread);
            buffer.own(thread, false);
            buffer.attach(cause);
            local.set(buffer);
            if (mine != null && !isVirtual) {
                mine.forget();
            }
        } catch (Throwable e) {
            // A stack overflow or an out-of-memory error must not leak the slot.
            if (own == null) {
                putBack(buffer);
            }
            throw e;
        }
        return buffer;
    }

    /**
     * The parent for calls that this thread causes, as {@link ThreadBuffer#context}. For a thread
     * without a buffer: the parent of its outermost calls, or null.
     */
    Context context() {
        ThreadBuffer buffer = local.get();
        if (buffer != null && buffer != unassigned) {
            return buffer.context();
        }
        Bufferless mine = bufferless.get();
        Thread thread = Thread.currentThread();
        return mine == null ? Inheritance.of(thread) : mine.cause(thread);
    }

    /**
     * Makes {@code context} the parent of this thread's next outermost calls.
     *
     * @return the previous parent, may be null
     */
    Context attach(Context context) {
        ThreadBuffer buffer = local.get();
        if (buffer != null && !buffer.isBorrowed()) {
            return buffer.attach(context);
        }
        Bufferless mine = bufferless();
        Context before = mine.cause(Thread.currentThread());
        mine.attach(context);
        if (buffer != null && buffer != unassigned) {
            buffer.attach(context);
        }
        return before;
    }

    private Bufferless bufferless() {
        Bufferless mine = bufferless.get();
        if (mine == null) {
            mine = new Bufferless();
            bufferless.set(mine);
        }
        return mine;
    }

    // ---- calls of threads without a buffer ----

    /** Drops a call. @return the token of the call */
    int drop() {
        droppedWithoutBuffer.increment();
        return - ++bufferless().openDropped;
    }

    /** Ends a dropped call. @param call its token; other tokens are ignored */
    void droppedEnds(int call) {
        Bufferless mine = bufferless();
        if (call < 0 && -call <= mine.openDropped) {
            mine.openDropped = -call - 1;
        }
        if (mine.openDropped == 0) {
            local.set(null);
        }
    }

    int openDropped() {
        return bufferless().openDropped;
    }

    void dropRecord() {
        recordsDroppedWithoutBuffer.increment();
    }

    // ---- borrowed buffers ----

    /**
     * Lends a buffer for a call that may end on another thread. If none is free, or too many are
     * lent, the result is a placeholder, which drops and counts the call. The caller must return
     * the buffer with {@link #takeBack}, on any thread.
     */
    ThreadBuffer lend(Thread thread) {
        ThreadBuffer buffer = null;
        if (lent.incrementAndGet() <= LENT_MAX) {
            buffer = virtual.take();
        }
        if (buffer == null) {
            buffer = new ThreadBuffer(this, ThreadBuffer.NOT_LENT, 0, true);
        }
        buffer.own(thread, true);
        return buffer;
    }

    void takeBack(ThreadBuffer buffer) {
        lent.decrementAndGet();
        putBack(buffer);
    }

    /** Returns the borrowed buffer of this thread. The thread must have no open recorded call. */
    void giveBack(ThreadBuffer buffer) {
        if (buffer == unassigned) {
            if (openDropped() == 0) {
                local.set(null);
            }
            return;
        }
        local.set(null);
        putBack(buffer);
    }

    private void putBack(ThreadBuffer buffer) {
        if (buffer.slot < 0) {
            droppedWithoutBuffer.add(buffer.callsDropped());
            recordsDroppedWithoutBuffer.add(buffer.records().dropped());
            return;
        }
        buffer.disown();
        (buffer.isBorrowed() ? virtual : platform).put(buffer);
    }

    /**
     * Queues a call that ended after its thread had left it. The queue is a linked list of the
     * calls themselves.
     */
    void ended(HandedCall call) {
        HandedCall last;
        do {
            last = ended.get();
            call.next = last;
        } while (!ended.compareAndSet(last, call));
    }

    // ---- for the sender ----

    /** Takes all queued calls. Returns the first of a linked list, or null. */
    public HandedCall takeEnded() {
        return ended.get() == null ? null : ended.getAndSet(null);
    }

    /** Selects the traces to record; null if all traces are recorded. */
    public Traces traces() {
        return traces;
    }

    public void forEach(Consumer<ThreadBuffer> reader) {
        platform.forEach(reader);
        virtual.forEach(reader);
    }

    /**
     * Reclaims the buffer of a thread that has ended, if the sender has read all its events.
     *
     * @return false if the owner has not ended, if there is no owner, if the buffer has unread
     *     events, or if it is lent to a {@link HandedCall}
     */
    public boolean reclaim(ThreadBuffer buffer) {
        if (!buffer.hasLostOwner() || buffer.published() != buffer.consumed()) {
            return false;
        }
        buffer.reset();
        putBack(buffer);
        return true;
    }

    public long callsDroppedWithoutBuffer() {
        return droppedWithoutBuffer.sum();
    }

    public long recordsDroppedWithoutBuffer() {
        return recordsDroppedWithoutBuffer.sum();
    }

    /** Size of all existing rings of words, in bytes, without the side rings of objects. */
    public long bytes() {
        return platform.bytes() + virtual.bytes();
    }

    /**
     * Puts the sender to sleep until the time is over or a ring is half full. A wake-up just before
     * the sleep is lost; the writer of calls repeats it after the next quarter of its ring.
     */
    public void sleep(long nanos) {
        sleeper = Thread.currentThread();
        LockSupport.parkNanos(this, nanos);
        sleeper = null;
    }

    public void wake() {
        Thread thread = sleeper;
        if (thread != null) {
            sleeper = null;
            LockSupport.unpark(thread);
        }
    }

    // ---- for the buffers ----

    long takeSegments(int count) {
        return segments.getAndAdd(count);
    }

    CallPairs pairs() {
        return pairs;
    }

    Session session() {
        return session;
    }

    long blockNanos() {
        return blockNanos;
    }

    private static int powerOfTwo(int atLeast) {
        int bounded = Math.max(64, Math.min(atLeast, 1 << 24));
        return Integer.highestOneBit(bounded * 2 - 1);
    }

    private static boolean isVirtual(Thread thread) {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable e) {
            return false;
        }
    }

    /** {@code Thread.isVirtual} exists in JDK 21 and later. */
    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
