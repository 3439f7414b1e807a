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
 * Which buffer belongs to which thread. A platform thread gets one with its first call and keeps it
 * for life; a virtual thread, of which there may be millions, borrows one while an outermost call
 * is open. A thread that only hands work on, or is handed some, needs none. All are bounded in number;
 * a thread that gets none has its calls left out and counted, which allocates nothing.
 */
public final class Buffers {
    /** Threads that begin a call without staying in it, at one moment ({@link HandedCall#begin}). */
    private static final int LENT_MAX = 256;

    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /** Set to null, not removed, where a buffer is given back: the next one allocates no entry. */
    private final ThreadLocal<ThreadBuffer> local = new ThreadLocal<>();

    private final ThreadLocal<Bufferless> bufferless = new ThreadLocal<>();

    /** Of all threads that got none. */
    private final ThreadBuffer nobodys;

    private final Session session;
    private final BufferPool platform;
    private final BufferPool virtual;
    private final long blockNanos;
    private final CallPairs pairs = new CallPairs(Operations.shared());

    /** Null where all traces are kept. */
    private final Traces traces;

    private final AtomicLong segments = new AtomicLong(1);
    private final LongAdder droppedWithoutBuffer = new LongAdder();
    private final LongAdder recordsDroppedWithoutBuffer = new LongAdder();
    private final AtomicInteger lent = new AtomicInteger();
    private final AtomicReference<HandedCall> ended = new AtomicReference<>();
    private volatile Thread sleeper;

    /** Sizes and policy. All are fixed before the first call is recorded. */
    public static final class Options {
        /** Words a platform thread's ring holds; rounded up to a power of two. */
        public int words = 32_768;

        /** Platform threads that can be recorded at once. */
        public int threadsMax = 1_024;

        /** Words of a ring lent to a virtual thread. */
        public int virtualWords = 2_048;

        /** Virtual threads that can be inside an outermost call at once. */
        public int virtualMax = 1_024;

        /** Longest wait for room, ns; 0: never wait, leave out. */
        public long blockNanos;

        /** Traces kept a second over all threads; 0: all. */
        public long tracesMax;
    }

    public Buffers(Session session, Options options) {
        this.session = session;
        this.blockNanos = options.blockNanos;
        this.traces = options.tracesMax > 0 ? new Traces(options.tracesMax) : null;
        this.platform = new BufferPool(this, options.threadsMax, powerOfTwo(options.words), false);
        this.virtual =
                new BufferPool(this, options.virtualMax, powerOfTwo(options.virtualWords), true);
        this.nobodys = new ThreadBuffer(this, ThreadBuffer.NOBODYS, 0, true);
    }

    /** The buffer of the calling thread; never null. */
    public ThreadBuffer current() {
        ThreadBuffer buffer = local.get();
        return buffer != null ? buffer : take(Thread.currentThread());
    }

    private ThreadBuffer take(Thread thread) {
        boolean isVirtual = isVirtual(thread);
        Bufferless mine = bufferless.get();
        // Some pools wipe the thread locals of their threads between tasks.
        boolean mayHaveOne = !isVirtual && (mine == null || !mine.hasNone);
        ThreadBuffer own = mayHaveOne ? platform.ownedBy(thread) : null;
        ThreadBuffer buffer = own != null ? own : (isVirtual ? virtual : platform).take();
        if (buffer == null) {
            // Until the outermost call is over: there may be room then.
            bufferless().hasNone = true;
            local.set(nobodys);
            return nobodys;
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
            // Out of stack or memory: or it would be a buffer that nobody has and nobody can take.
            if (own == null) {
                putBack(buffer);
            }
            throw e;
        }
        return buffer;
    }

    /** The innermost open call of this thread, or what causes those to come; null for nobody. */
    Context context() {
        ThreadBuffer buffer = local.get();
        if (buffer != null && buffer != nobodys) {
            return buffer.context();
        }
        Bufferless mine = bufferless.get();
        Thread thread = Thread.currentThread();
        return mine == null ? Inheritance.of(thread) : mine.cause(thread);
    }

    /**
     * Makes {@code context} the parent of this thread's outermost calls to come. @return what it
     * was before, may be null
     */
    Context attach(Context context) {
        ThreadBuffer buffer = local.get();
        if (buffer != null && !buffer.isBorrowed()) {
            return buffer.attach(context);
        }
        Bufferless mine = bufferless();
        Context before = mine.cause(Thread.currentThread());
        mine.attach(context);
        if (buffer != null && buffer != nobodys) {
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

    // ---- calls of threads that got no buffer ----

    /** A call is left out. @return its token */
    int leaveOut() {
        droppedWithoutBuffer.increment();
        return - ++bufferless().leftOut;
    }

    /** A call that was left out is over. @param call its token; others are ignored */
    void leftOutEnds(int call) {
        Bufferless mine = bufferless();
        if (call < 0 && -call <= mine.leftOut) {
            mine.leftOut = -call - 1;
        }
        if (mine.leftOut == 0) {
            local.set(null);
        }
    }

    /** Calls of this thread that are open and left out. */
    int leftOut() {
        return bufferless().leftOut;
    }

    /** A record of a declared type is left out. */
    void leaveOutRecord() {
        recordsDroppedWithoutBuffer.increment();
    }

    // ---- buffers that are borrowed ----

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

    /** The outermost call of a borrowed buffer is over. */
    void giveBack(ThreadBuffer buffer) {
        if (buffer == nobodys) {
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

    /** A call is over that its thread has left. The calls themselves are the list. */
    void ended(HandedCall call) {
        HandedCall last;
        do {
            last = ended.get();
            call.next = last;
        } while (!ended.compareAndSet(last, call));
    }

    // ---- for the sender ----

    /** Takes the calls that have ended since it was asked last; null for none. */
    public HandedCall takeEnded() {
        return ended.get() == null ? null : ended.getAndSet(null);
    }

    /** Which traces are kept; null where all are. */
    public Traces traces() {
        return traces;
    }

    /** Hands every buffer that may hold events to {@code reader}. */
    public void forEach(Consumer<ThreadBuffer> reader) {
        platform.forEach(reader);
        virtual.forEach(reader);
    }

    /**
     * Takes back the buffer of a thread that has ended, once everything in it was read.
     *
     * @return false if it is still somebody's, or there is something in it yet
     */
    public boolean reclaim(ThreadBuffer buffer) {
        if (!buffer.hasLostOwner() || buffer.published() != buffer.consumed()) {
            return false;
        }
        buffer.reset();
        putBack(buffer);
        return true;
    }

    /** Calls left out because their thread got no buffer. */
    public long callsDroppedWithoutBuffer() {
        return droppedWithoutBuffer.sum();
    }

    /** Records of declared types left out because their thread got no buffer. */
    public long recordsDroppedWithoutBuffer() {
        return recordsDroppedWithoutBuffer.sum();
    }

    /** Bytes of all rings that exist. */
    public long bytes() {
        return platform.bytes() + virtual.bytes();
    }

    /**
     * The sender sleeps until the time is up or a ring is half full. A wake-up just before it is
     * lost; the writer repeats it after the next quarter of its ring.
     */
    public void sleep(long nanos) {
        sleeper = Thread.currentThread();
        LockSupport.parkNanos(this, nanos);
        sleeper = null;
    }

    /** Ends the sender's sleep, if it sleeps. */
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

    /** {@code Thread.isVirtual} is there from JDK 21 on. */
    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
