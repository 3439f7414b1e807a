package io.tachograph.bootstrap;

import java.util.concurrent.locks.LockSupport;

/**
 * Writes declared records into a thread's ring, between the events of its calls. A record is one
 * word with type and time, one word for each numeric or boolean value, and one object in the side
 * ring for each other value.
 *
 * <b>Readers never see a partial record</b>: values are written past the published end, and one
 * release store publishes all of them. After a failure before that store, the ring is unchanged. A
 * record never uses the space that the exits of open calls need. A record that does not fit is
 * dropped whole and counted.
 *
 * <p>Before: generated code, through {@code io.tachograph.api.RecordWriter}. After: {@code
 * io.tachograph.core.send.RingReader}.
 */
public final class RecordCursor {
    private static final long BLOCK_STEP_NANOS = 100_000;

    private final ThreadBuffer buffer;

    private long head;

    private long objectsHead;
    private boolean blockTimedOut;
    private volatile long dropped;

    RecordCursor(ThreadBuffer buffer) {
        this.buffer = buffer;
    }

    public static RecordCursor current() {
        return Recorder.buffer().records();
    }

    /**
     * Begins a record. The caller then writes the values in the order of the type's fields and
     * calls {@link #end}.
     *
     * @param type id from {@link RecordTypes}
     * @param words number of numeric and boolean values of the type
     * @param objects number of its other values
     * @return false if the record is dropped
     */
    public boolean begin(int type, int words, int objects) {
        if (type == 0 || !fit(words + 1, objects) && !block(words + 1, objects)) {
            if (buffer.slot == ThreadBuffer.UNASSIGNED) {
                buffer.home.dropRecord();
            } else {
                dropped = dropped + 1; // single writer
            }
            buffer.settle();
            return false;
        }
        blockTimedOut = false;
        head = buffer.head;
        objectsHead = buffer.objectsHead;
        put(Word.record(System.nanoTime(), type));
        return true;
    }

    public void put(long word) {
        buffer.ring[(int) head & buffer.mask] = word;
        head++;
    }

    /**
     * Writes a value. The object must not change afterwards, and its class must belong to the JDK.
     */
    public void put(Object object) {
        buffer.objects[(int) objectsHead & buffer.objects.length - 1] = object;
        objectsHead++;
    }

    public void end() {
        buffer.publishTo(head);
        // Only the writer reads objectsHead, so it may be stored second. No method is called
        // between the two stores, so no failure can separate them.
        buffer.objectsHead = objectsHead;
        buffer.settle();
    }

    /** Discards a record. The ring is unchanged. */
    public void fail() {
        buffer.settle();
    }

    private boolean fit(int words, int objects) {
        long freed = buffer.freed();
        if (buffer.head - freed > buffer.ring.length / 2) {
            buffer.home.wake();
        }
        long full = freed + buffer.ring.length - Ring.MARGIN;
        return buffer.head + buffer.depth + words < full
                && (objects == 0 || buffer.objectsFit(objects));
    }

    /**
     * Waits for space under the policy {@code block}. After a wait without success, records are
     * dropped without a wait until a record fits again.
     */
    private boolean block(int words, int objects) {
        long nanos = buffer.home.blockNanos();
        if (nanos <= 0 || blockTimedOut || words >= buffer.ring.length - Ring.MARGIN) {
            return false;
        }
        long until = System.nanoTime() + nanos;
        while (System.nanoTime() - until < 0) {
            LockSupport.parkNanos(buffer, BLOCK_STEP_NANOS);
            if (fit(words, objects)) {
                return true;
            }
        }
        blockTimedOut = true;
        return false;
    }

    /** Number of records dropped since the buffer was created. */
    public long dropped() {
        return dropped;
    }
}
