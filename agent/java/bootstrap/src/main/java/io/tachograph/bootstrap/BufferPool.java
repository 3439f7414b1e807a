package io.tachograph.bootstrap;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;

/**
 * A bounded pool of buffers, created on demand. Each slot has one bit, which is set while the slot
 * is free. Taking and returning an existing buffer therefore neither allocates nor locks. A
 * lock-free linked list would have the ABA problem.
 */
final class BufferPool {
    /** Pause after an {@code OutOfMemoryError}, in which no buffer is created. */
    private static final long SHORT_NANOS = 1_000_000_000;

    private final Buffers home;
    private final int words;
    private final boolean borrowed;
    private final AtomicLongArray free;
    private final AtomicReferenceArray<ThreadBuffer> buffers;

    /** All positions from this value on are empty. */
    private final AtomicInteger made = new AtomicInteger();

    /**
     * {@code System.nanoTime()} at the end of the latest pause, made odd so that it is never 0; 0
     * if there was no pause.
     */
    private volatile long shortUntil;

    BufferPool(Buffers home, int countMax, int words, boolean borrowed) {
        int rows = Math.max(1, (countMax + 63) / 64);
        this.home = home;
        this.words = words;
        this.borrowed = borrowed;
        this.free = new AtomicLongArray(rows);
        this.buffers = new AtomicReferenceArray<>(rows * 64);
        for (int row = 0; row < rows; row++) {
            free.set(row, -1L);
        }
    }

    /** Returns a free buffer; null if the pool is exhausted or memory is short. */
    ThreadBuffer take() {
        for (int row = 0; row < free.length(); row++) {
            long bits = free.get(row);
            while (bits != 0) {
                long bit = Long.lowestOneBit(bits);
                if (free.compareAndSet(row, bits, bits & ~bit)) {
                    return at(row * 64 + Long.numberOfTrailingZeros(bit));
                }
                bits = free.get(row);
            }
        }
        return null;
    }

    private ThreadBuffer at(int slot) {
        ThreadBuffer buffer = buffers.get(slot);
        try {
            if (buffer == null && !isShort()) {
                ThreadBuffer fresh = new ThreadBuffer(home, slot, words, borrowed);
                made.accumulateAndGet(slot + 1, Math::max);
                buffers.set(slot, fresh);
                buffer = fresh;
            }
        } catch (OutOfMemoryError e) {
            shortUntil = System.nanoTime() + SHORT_NANOS | 1;
        } finally {
            if (buffer == null) {
                put(slot); // also after a stack overflow
            }
        }
        return buffer;
    }

    /**
     * True during the pause. Without the pause, each failed allocation would cost a full
     * collection, which stops the program.
     */
    private boolean isShort() {
        long until = shortUntil;
        return until != 0 && System.nanoTime() - until < 0;
    }

    void put(ThreadBuffer buffer) {
        put(buffer.slot);
    }

    private void put(int slot) {
        int row = slot >>> 6;
        long bit = 1L << slot;
        long bits;
        do {
            bits = free.get(row);
        } while (!free.compareAndSet(row, bits, bits | bit));
    }

    ThreadBuffer ownedBy(Thread thread) {
        int end = made.get();
        for (int slot = 0; slot < end; slot++) {
            ThreadBuffer buffer = buffers.get(slot);
            if (buffer != null && buffer.owner() == thread) {
                return buffer;
            }
        }
        return null;
    }

    void forEach(Consumer<ThreadBuffer> reader) {
        int end = made.get();
        for (int slot = 0; slot < end; slot++) {
            ThreadBuffer buffer = buffers.get(slot);
            if (buffer != null) {
                reader.accept(buffer);
            }
        }
    }

    long bytes() {
        long count = 0;
        int end = made.get();
        for (int slot = 0; slot < end; slot++) {
            if (buffers.get(slot) != null) {
                count++;
            }
        }
        return count * words * Long.BYTES;
    }
}
