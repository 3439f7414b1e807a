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
 * Assigns buffers to threads. A platform thread gets one with its first call and keeps it for life;
 * a virtual thread, of which there may be millions, borrows one while an outermost call is open. A
 * thread that only submits or receives tasks needs none. All are bounded in number; calls of a
 * thread without a buffer are dropped and counted, which allocates nothing.
 */
public final class Buffers {
    /** Buffers lent at one moment to threads that only begin a call ({@link HandedCall#begin}). */
    private static final int LENT_MAX = 256;

    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /**
     * Set to null, not removed, when a buffer is returned, so that the next one allocates no entry.
     */
    private final ThreadLocal<ThreadBuffer> local = new ThreadLocal<>();

    private final ThreadLocal<Bufferless> bufferless = new ThreadLocal<>();

    /** Shared by all threads without a buffer. */
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

    /** Sizes and overflow policy, fixed before the first call is recorded. */
    public static final class Options {
        /** Words a platform thread's ring holds; rounded up to a power of two. */
        public int words = 32_768;

        /** Maximum number of platform threads that are recorded at once. */
        public int threadsMax = 1_024;

        /** Words of a ring lent to a virtual thread. */
        public int virtualWords = 2_048;

        /** Maximum number of virtual threads inside an outermost call at once. */
        public int virtualMax = 1_024;

        /** Longest wait for room, ns; 0: never wait, drop the call. */
        public long blockNanos;

        /** Traces recorded per second over all threads; 0: all. */
        public long tracesMax;
    }

    public Buffers(Session session, Options options) {
        this.session = session;
        this.blockNanos = options.blockNanos;
        this.traces = options.tracesMax > 0 ? new Traces(options.tracesMax) : null;
        this.platform = new BufferPool(this, options.threadsMax, powerOfTwo(options.words), false);
        this.virtual =
                new BufferPool(this, options.virtualMax, powerOfTwo(options.virtualWords), true);
        this.unassigned = new ThreadBuffer(this, ThreadBuffer.NOBODYS, 0, true);
    }

    /** The buffer of the calling thread; never null. */
    public ThreadBuffer current() {
        ThreadBuffer buffer = local.get();
        return buffer != null ? buffer : take(Thread.currentThread());
    }

    private ThreadBuffer take(Thread thread) {
        boolean isVirtual = isVirtual(thread);
        Bufferless mine = bufferless.get();
        // Some pools clear the thread locals of their threads between tasks.
        boolean mayHaveOne = !isVirtual && (mine == null || !mine.hasNone);
        ThreadBuffer own = mayHaveOne ? platform.ownedBy(thread) : null;
        ThreadBuffer buffer = own != null ? own : (isVirtual ? virtual : platform).take();
        if (buffer == null) {
            // Until the outermost call ends: a buffer may be free after that.
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
            // Stack overflow or out of memory: without this, the slot would leak.
            if (own == null) {
                putBack(buffer);
            }
            throw e;
        }
        return buffer;
    }

    /**
     * The innermost open call of this thread, or else the parent of its next outermost call; null
     * if there is none.
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
     * Makes {@code context} the parent of this thread's next outermost calls. @return the previous
     * parent, may be null
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

    /** Drops a call. @return its token */
    int leaveOut() {
        droppedWithoutBuffer.increment();
        return - ++bufferless().leftOut;
    }

    /** Ends a dropped call. @param call its token; other tokens are ignored */
    void leftOutEnds(int call) {
        Bufferless mine = bufferless();
        if (call < 0 && -call <= mine.leftOut) {
            mine.leftOut = -call - 1;
        }
        if (mine.leftOut == 0) {
            local.set(null);
        }
    }

    /** Open calls of this thread that are dropped. */
    int leftOut() {
        return bufferless().leftOut;
    }

    /** Drops a record of a declared type. */
    void leaveOutRecord() {
        recordsDroppedWithoutBuffer.increment();
    }

    // ---- borrowed buffers ----

    /**
     * A buffer for a call that does not stay on this thread; {@link #takeBack} must follow, on any
     * thread.
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

    /** Returns a borrowed buffer after its outermost call. */
    void giveBack(ThreadBuffer buffer) {
        if (buffer == unassigned) {
            if (leftOut() == 0) {
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

    /** Queues a call that ended after its thread left it. The calls form the linked list. */
    void ended(HandedCall call) {
        HandedCall last;
        do {
            last = ended.get();
            call.next = last;
        } while (!ended.compareAndSet(last, call));
    }

    // ---- for the sender ----

    /** Takes the calls that ended since the last call of this method; null for none. */
    public HandedCall takeEnded() {
        return ended.get() == null ? null : ended.getAndSet(null);
    }

    /** The selection of traces; null if all are recorded. */
    public Traces traces() {
        return traces;
    }

    /** Passes every buffer that may hold events to {@code reader}. */
    public void forEach(Consumer<ThreadBuffer> reader) {
        platform.forEach(reader);
        virtual.forEach(reader);
    }

    /**
     * Reclaims the buffer of a thread that has ended, once all its events are read.
     *
     * @return false if the buffer has an owner or unread events
     */
    public boolean reclaim(ThreadBuffer buffer) {
        if (!buffer.hasLostOwner() || buffer.published() != buffer.consumed()) {
            return false;
        }
        buffer.reset();
        putBack(buffer);
        return true;
    }

    /** Calls dropped because their thread has no buffer. */
    public long callsDroppedWithoutBuffer() {
        return droppedWithoutBuffer.sum();
    }

    /** Records of declared types dropped because their thread has no buffer. */
    public long recordsDroppedWithoutBuffer() {
        return recordsDroppedWithoutBuffer.sum();
    }

    /** Bytes of all existing rings. */
    public long bytes() {
        return platform.bytes() + virtual.bytes();
    }

    /**
     * The sender sleeps until the time is up or a ring is half full. A wake-up just before the
     * sleep is lost; the writer repeats it after the next quarter of its ring.
     */
    public void sleep(long nanos) {
        sleeper = Thread.currentThread();
        LockSupport.parkNanos(this, nanos);
        sleeper = null;
    }

    /** Wakes the sender if it sleeps. */
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

    /** {@code Thread.isVirtual} exists since JDK 21. */
    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
