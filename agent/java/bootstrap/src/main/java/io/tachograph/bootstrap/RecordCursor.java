package io.tachograph.bootstrap;

import java.util.concurrent.locks.LockSupport;

/**
 * Writes records of declared types into a thread's ring, between the events of its calls: one word
 * with type and time, one word for each number, an object in the side ring for each other value.
 *
 * <p><b>Readers never see a partial record</b>: values are written past the published end, and one
 * release store publishes them all; a failure before it leaves nothing. A record never takes the
 * space that exits of open calls need. A record that does not fit is dropped whole and counted.
 *
 * <p>Before: generated code, through {@code io.tachograph.api.RecordWriter}. After: {@code
 * io.tachograph.core.send.RingReader}.
 */
public final class RecordCursor {
    private static final long BLOCK_STEP_NANOS = 100_000;

    private final ThreadBuffer buffer;

    /** Position of the next word and of the next object. */
    private long head;

    private long objectsHead;
    private boolean blockedInVain;
    private volatile long dropped;

    RecordCursor(ThreadBuffer buffer) {
        this.buffer = buffer;
    }

    /** The cursor of the calling thread. */
    public static RecordCursor current() {
        return Recorder.buffer().records();
    }

    /**
     * Begins a record; its values follow in the order of the type's fields, then {@link #end}.
     *
     * @param type id from {@link RecordTypes}
     * @param words number of numeric and boolean values of the type
     * @param objects number of its other values
     * @return false if the record is dropped
     */
    public boolean begin(int type, int words, int objects) {
        if (type == 0 || !fit(words + 1, objects) && !block(words + 1, objects)) {
            if (buffer.slot == ThreadBuffer.NOBODYS) {
                buffer.home.leaveOutRecord();
            } else {
                dropped = dropped + 1; // single writer
            }
            buffer.settle();
            return false;
        }
        blockedInVain = false;
        head = buffer.head;
        objectsHead = buffer.objectsHead;
        put(Word.record(System.nanoTime(), type));
        return true;
    }

    public void put(long word) {
        buffer.ring[(int) head & buffer.mask] = word;
        head++;
    }

    /** The object must not change after this, and its class must belong to the JDK. */
    public void put(Object object) {
        buffer.objects[(int) objectsHead & buffer.objects.length - 1] = object;
        objectsHead++;
    }

    /** Publishes the record. */
    public void end() {
        buffer.publishTo(head);
        // Only the writer reads this field, so it may be stored second. There is no call between
        // the two stores, so nothing can fail between them.
        buffer.objectsHead = objectsHead;
        buffer.settle();
    }

    /** Discards a record that has begun or was about to begin; nothing of it was published. */
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

    /** Waits for space, like calls under the policy {@code block}: once per shortage. */
    private boolean block(int words, int objects) {
        long nanos = buffer.home.blockNanos();
        if (nanos <= 0 || blockedInVain || words >= buffer.ring.length - Ring.MARGIN) {
            return false;
        }
        long until = System.nanoTime() + nanos;
        while (System.nanoTime() - until < 0) {
            LockSupport.parkNanos(buffer, BLOCK_STEP_NANOS);
            if (fit(words, objects)) {
                return true;
            }
        }
        blockedInVain = true;
        return false;
    }

    /** Records dropped since the buffer was created. */
    public long dropped() {
        return dropped;
    }
}
