package io.tachograph.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;

/** Threads that need no buffer, and threads for which no buffer is free. */
class BufferlessTest {
    private static final Context CAUSE = Context.local(1, 2, 3, 4);
    private static final int OPERATION = Operations.shared().id(Operations.METHOD, "bufferless");

    private static Buffers buffers() {
        Buffers.Options options = new Buffers.Options();
        options.threadsMax = 64;
        options.words = 64;
        return new Buffers(new Session(1, 2), options);
    }

    private static <V> V onAnotherThread(Callable<V> body) throws Exception {
        FutureTask<V> task = new FutureTask<>(body);
        Thread thread = new Thread(task, "other");
        thread.start();
        return task.get();
    }

    private static List<Thread> takeAll(Buffers buffers, CountDownLatch done) throws Exception {
        List<Thread> threads = new ArrayList<>();
        CountDownLatch all = new CountDownLatch(64);
        for (int at = 0; at < 64; at++) {
            Thread thread =
                    new Thread(
                            () -> {
                                ThreadBuffer buffer = buffers.current();
                                buffer.exit(buffer.enter(OPERATION));
                                all.countDown();
                                try {
                                    done.await();
                                } catch (InterruptedException e) {
                                    Thread.currentThread().interrupt();
                                }
                            });
            thread.start();
            threads.add(thread);
        }
        all.await();
        return threads;
    }

    @Test
    void submittingAndReceivingTasksTakesNoBuffer() throws Exception {
        Buffers buffers = buffers();
        onAnotherThread(
                () -> {
                    assertNull(buffers.context());
                    assertNull(buffers.attach(CAUSE));
                    assertSame(CAUSE, buffers.context());
                    Context inner = Context.local(5, 6, 7, 8);
                    assertSame(CAUSE, buffers.attach(inner));
                    assertSame(inner, buffers.context());
                    buffers.attach(CAUSE);
                    assertSame(CAUSE, buffers.context());
                    buffers.attach(null);
                    assertNull(buffers.context());
                    return null;
                });
        assertEquals(0, buffers.bytes());
    }

    @Test
    void aContextAttachedBeforeTheFirstCallIsItsParent() throws Exception {
        Buffers buffers = buffers();
        onAnotherThread(
                () -> {
                    Context before = buffers.attach(CAUSE);
                    ThreadBuffer buffer = buffers.current();
                    int call = buffer.enter(OPERATION);
                    Context open = buffers.context();
                    assertEquals(CAUSE.traceLow(), open.traceLow());
                    assertNotNull(open);
                    buffer.exit(call);
                    assertSame(CAUSE, buffers.context());
                    buffers.attach(before);
                    assertNull(buffers.context());
                    return null;
                });
        assertEquals(64 * Long.BYTES, buffers.bytes());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallWithoutABufferIsDroppedWithItsCallees(boolean attaches) throws Exception {
        Buffers buffers = buffers();
        CountDownLatch done = new CountDownLatch(1);
        List<Thread> threads = takeAll(buffers, done);
        try {
            onAnotherThread(
                    () -> {
                        Context cause = attaches ? CAUSE : null;
                        buffers.attach(cause);
                        ThreadBuffer none = buffers.current();
                        int outer = none.enter(OPERATION);
                        int inner = buffers.current().enter(OPERATION);
                        assertTrue(outer < 0 && inner < 0);
                        assertEquals(inner, none.innermost(OPERATION));
                        assertSame(cause, buffers.context());
                        none.attribute(inner, "key", "value");
                        none.exitFailed(inner, new RuntimeException());
                        // A buffer is free again, but calls inside a dropped call do not use it.
                        done.countDown();
                        for (Thread thread : threads) {
                            thread.join();
                        }
                        buffers.forEach(each -> each.free(each.published()));
                        buffers.forEach(each -> assertTrue(buffers.reclaim(each)));
                        assertTrue(buffers.current().enter(OPERATION) < 0);
                        none.exit(outer); // also ends the call inside it
                        none.exit(outer); // no effect
                        int recorded = buffers.current().enter(OPERATION);
                        assertEquals(1, recorded);
                        assertEquals(cause != null, buffers.context().traceLow() == 2);
                        buffers.current().exit(recorded);
                        return null;
                    });
        } finally {
            done.countDown();
        }
        assertEquals(3, buffers.callsDroppedWithoutBuffer());
    }

    @Test
    void aCallWithoutABufferAllocatesNothing() throws Exception {
        Buffers buffers = buffers();
        CountDownLatch done = new CountDownLatch(1);
        takeAll(buffers, done);
        var bean = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        int rounds = 20_000;
        try {
            long least =
                    onAnotherThread(
                            () -> {
                                long fewest = Long.MAX_VALUE;
                                for (int run = 0; run < 5; run++) {
                                    long before = bean.getCurrentThreadAllocatedBytes();
                                    for (int at = 0; at < rounds; at++) {
                                        ThreadBuffer buffer = buffers.current();
                                        int call = buffer.enter(OPERATION);
                                        buffers.context();
                                        buffer.exit(call);
                                    }
                                    long bytes = bean.getCurrentThreadAllocatedBytes() - before;
                                    fewest = Math.min(fewest, bytes);
                                }
                                return fewest;
                            });
            assertTrue(least < rounds, () -> least + " bytes for " + rounds + " calls");
        } finally {
            done.countDown();
        }
        assertEquals(5L * rounds, buffers.callsDroppedWithoutBuffer());
    }

    /**
     * The owner of the buffer has ended, and the exit of its call was lost. A buffer that is lent
     * to a call that may end on another thread is not reclaimed, because the call outlives the
     * thread.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBorrowedBufferOfAnEndedThreadIsReclaimedUnlessItIsLent(boolean isLent) throws Exception {
        Buffers buffers = buffers();
        ThreadBuffer buffer = new ThreadBuffer(buffers, 0, 64, true);
        Thread thread = new Thread(() -> buffer.enter(OPERATION), "virtual");
        buffer.own(thread, isLent);
        thread.start();
        thread.join();
        assertFalse(buffers.reclaim(buffer), "a buffer with unread events was reclaimed");
        buffer.free(buffer.published());
        assertEquals(!isLent, buffers.reclaim(buffer));
        assertEquals(isLent ? thread : null, buffer.owner());
    }

    @Test
    void recordsWithoutABufferAreCounted() throws Exception {
        Buffers buffers = buffers();
        CountDownLatch done = new CountDownLatch(1);
        takeAll(buffers, done);
        try {
            onAnotherThread(
                    () -> {
                        assertFalse(buffers.current().records().begin(1, 2, 3));
                        assertFalse(buffers.current().records().begin(0, 0, 0));
                        return null;
                    });
        } finally {
            done.countDown();
        }
        assertEquals(2, buffers.recordsDroppedWithoutBuffer());
    }
}
