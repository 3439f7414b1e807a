package io.tachograph.bootstrap;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Which buffer belongs to which thread. A platform thread keeps one for life; a virtual thread, of
 * which there may be millions, borrows one while an outermost call is open. All are bounded in
 * number; a thread that gets none has its calls left out and counted.
 */
public final class Buffers {
    /** Threads that begin a call without staying in it, at one moment ({@link HandedCall#begin}). */
    private static final int LENT_MAX = 256;

    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    private final ThreadLocal<ThreadBuffer> local = new ThreadLocal<>();
    private final Session session;
    private final BufferPool platform;
    private final BufferPool virtual;
    private final long blockNanos;
    private final CallPairs pairs = new CallPairs(Operations.shared());

    /** Null where all traces are kept. */
    private final Traces traces;

    private final AtomicLong segments = new AtomicLong(1);
    private final AtomicLong droppedWithoutBuffer = new AtomicLong();
    private final AtomicLong recordsDroppedWithoutBuffer = new AtomicLong();
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
    }

    /** The buffer of the calling thread; never null. */
    public ThreadBuffer current() {
        ThreadBuffer buffer = local.get();
        return buffer != null ? buffer : attach(Thread.currentThread());
    }

    private ThreadBuffer attach(Thread thread) {
        boolean isVirtual = isVirtual(thread);
        ThreadBuffer buffer = null;
        if (!isVirtual) {
            // Some pools wipe the thread locals of their threads between tasks.
            buffer = platform.ownedBy(thread);
        }
        if (buffer == null) {
            buffer = (isVirtual ? virtual : platform).take();
        }
        if (buffer == null) {
            // Leaves everything out, and is given up again after the outermost call: there may be
            // room then.
            buffer = new ThreadBuffer(this, -1, 0, true);
        }
        buffer.own(thread);
        buffer.attach(Inheritance.of(thread));
        local.set(buffer);
        return buffer;
    }

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
            buffer = new ThreadBuffer(this, -1, 0, true);
        }
        buffer.own(thread);
        buffer.hold(); // it does not give itself back
        return buffer;
    }

    void takeBack(ThreadBuffer buffer) {
        lent.decrementAndGet();
        putBack(buffer);
    }

    /** The outermost call of a borrowed buffer is over. */
    void giveBack(ThreadBuffer buffer) {
        local.remove();
        putBack(buffer);
    }

    private void putBack(ThreadBuffer buffer) {
        if (buffer.slot < 0) {
            droppedWithoutBuffer.addAndGet(buffer.callsDropped());
            recordsDroppedWithoutBuffer.addAndGet(buffer.records().dropped());
            return;
        }
        buffer.disown();
        virtual.put(buffer);
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
     * @return false if its thread lives, or it has no thread, or there is something in it yet
     */
    public boolean reclaim(ThreadBuffer buffer) {
        Thread owner = buffer.owner();
        if (owner == null
                || buffer.isBorrowed()
                || owner.isAlive()
                || buffer.published() != buffer.consumed()) {
            return false;
        }
        buffer.reset();
        platform.put(buffer);
        return true;
    }

    /** Calls left out because their thread got no buffer. */
    public long callsDroppedWithoutBuffer() {
        return droppedWithoutBuffer.get();
    }

    /** Records of declared types left out because their thread got no buffer. */
    public long recordsDroppedWithoutBuffer() {
        return recordsDroppedWithoutBuffer.get();
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
