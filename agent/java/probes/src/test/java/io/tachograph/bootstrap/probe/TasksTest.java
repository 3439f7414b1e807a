package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.tachograph.bootstrap.CoarseClock;
import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Losses;
import io.tachograph.bootstrap.Recorder;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/** Simulates the queue of a pool; {@code ContextIT} tests real pools. */
class TasksTest {
    private static final Object WORKER = new Object();
    private static final AtomicLong SPANS = new AtomicLong();

    private final List<Context> seen = new ArrayList<>();
    private final Runnable task = () -> seen.add(Recorder.context());
    private final BlockingQueue<Object> queue = new LinkedBlockingQueue<>();

    @Test
    void eachRunBelongsToItsOwnSubmission() {
        offer(task);
        Context first = offerRecorded(task);
        Context second = offerRecorded(task);
        offer(task);
        offer(task);
        Context third = offerRecorded(task);
        runAll();
        assertSeen(null, first, second, null, null, third);
        runOne(task);
        assertNull(seen.get(6));
    }

    /** The coarse clock jumps if the sender, which sets it, did not run for a while. */
    @Test
    void aJumpOfTheCoarseClockDoesNotChangeTheOriginOfARunThatIsAboutToBegin() {
        Context first = offerRecorded(task);
        Object taken = queue.poll();
        long before = CoarseClock.nanos();
        CoarseClock.set(before + 3_600_000_000_000L);
        Context second = offerRecorded(task);
        CoarseClock.set(before);
        runOne(taken);
        runAll();
        assertSeen(first, second);
    }

    @Test
    void queuesAreIndependent() {
        Context here = offerRecorded(task);
        BlockingQueue<Object> other = new LinkedBlockingQueue<>();
        Tasks.offer(other, task);
        Tasks.run(task, other, WORKER);
        runAll();
        assertSeen(null, here);
    }

    @Test
    void aRefusedTaskLeavesNoOrigin() {
        BlockingQueue<Object> full = new LinkedBlockingQueue<>(1);
        recorded(() -> Tasks.offer(full, "filler"));
        recorded(() -> assertFalse(Tasks.offer(full, task)));
        assertFalse(Tasks.offer(full, task));
        full.clear();
        Tasks.offer(full, task);
        Tasks.run(task, full, WORKER);
        assertSeen(new Context[] {null});
    }

    @Test
    void aQueueThatThrowsLeavesNoOrigin() {
        BlockingQueue<Object> broken =
                new LinkedBlockingQueue<>() {
                    private static final long serialVersionUID = 1;

                    @Override
                    public boolean offer(Object task) {
                        throw new IllegalStateException("as planned");
                    }
                };
        recorded(() -> assertThrows(IllegalStateException.class, () -> Tasks.offer(broken, task)));
        Tasks.run(task, broken, WORKER);
        assertSeen(new Context[] {null});
    }

    @Test
    void aRemovedTaskDoesNotChangeTheOrderOfTheOthers() {
        offerRecorded(task);
        offer(task);
        Context last = offerRecorded(task);
        Tasks.removed(queue, queue.poll());
        Tasks.removedAll(queue, List.of(queue.poll()));
        runAll();
        assertSeen(last);
        offer(task);
        Tasks.removed(queue, queue.poll());
        offerRecorded(task);
        Tasks.discard(queue);
        Context after = offerRecorded(task);
        runAll();
        assertSeen(last, after);
    }

    @Test
    void withoutOrderSubmissionsOfDifferentCallsHaveNoParent() {
        BlockingQueue<Object> sorted = new PriorityBlockingQueue<>(2, (one, other) -> 0);
        long before = Losses.parents();
        for (int at = 0; at < 2; at++) {
            recorded(() -> Tasks.offer(sorted, task));
        }
        Tasks.run(task, sorted, WORKER);
        Tasks.run(task, sorted, WORKER);
        assertEquals(before + 2, Losses.parents());
        Context alone = recorded(() -> Tasks.offer(sorted, task));
        Tasks.run(task, sorted, WORKER);
        Context same =
                recorded(
                        () -> {
                            Tasks.offer(sorted, task);
                            Tasks.offer(sorted, task);
                        });
        Tasks.run(task, sorted, WORKER);
        Tasks.run(task, sorted, WORKER);
        assertSeen(null, null, alone, same, same);
        assertEquals(before + 2, Losses.parents());
    }

    @Test
    void aHandlerOfTheProgramMakesOriginsUncertain() {
        Context put = recorded(() -> Tasks.refused(queue, task));
        runOne(task);
        recorded(() -> Tasks.refused(queue, task)); // the handler of the program discarded it
        offer(task);
        runOne(task);
        offerRecorded(task);
        runOne(task);
        assertSeen(put, null, null);
        Context[] thrown = new Context[1];
        Runnable other = () -> seen.add(Recorder.context());
        recorded(() -> thrown[0] = Tasks.refused(queue, other));
        Tasks.takeBack(queue, other, thrown[0]);
        runOne(other);
        assertNull(seen.get(3));
    }

    @Test
    void aTaskThatStartsAThreadBypassesTheQueue() {
        Context waits = offerRecorded(task);
        Object recordedWorker = new Object();
        Object otherWorker = new Object();
        Context starts = recorded(() -> Tasks.first(recordedWorker, task));
        Tasks.first(otherWorker, task);
        Tasks.first(new Object(), null);
        Tasks.run(task, queue, otherWorker);
        Tasks.run(task, queue, recordedWorker);
        Tasks.run(task, queue, recordedWorker);
        assertSeen(null, starts, waits);
    }

    /** No starting thread takes the origin of a waiting task. */
    @Test
    void manyThreadsMayStartAtOnce() {
        Context waits = offerRecorded(task);
        List<Object> workers = new ArrayList<>();
        for (int at = 0; at < 70_000; at++) {
            Object worker = new Object();
            workers.add(worker);
            Tasks.first(worker, task);
        }
        Object recordedWorker = new Object();
        Context starts = recorded(() -> Tasks.first(recordedWorker, task));
        Tasks.run(task, queue, recordedWorker);
        Tasks.run(task, queue, workers.get(69_999));
        Tasks.run(task, queue, workers.get(69_999));
        assertSeen(starts, null, waits);
        for (Object worker : workers) {
            Tasks.run(() -> {}, queue, worker);
        }
    }

    @Test
    void anObjectWithOneSubmissionHasOneOrigin() {
        FutureTask<?> future = new FutureTask<>(task, null);
        Context origin = offerRecorded(future);
        runAll();
        assertSeen(origin);
        assertNull(Tasks.take(future));
        recorded(() -> Tasks.handOver(future)); // the task never ran
        Tasks.handOver(future);
        assertNull(Tasks.take(future));
    }

    @Test
    void theOriginHoldsWhileTheTaskRunsEvenIfItThrows() {
        Runnable failing =
                () -> {
                    seen.add(Recorder.context());
                    throw new IllegalStateException("as planned");
                };
        Context origin = offerRecorded(failing);
        assertThrows(IllegalStateException.class, () -> Tasks.run(failing, queue, WORKER));
        assertNull(Recorder.context());
        assertSeen(origin);
    }

    @Test
    void originsPastTheBoundAreDroppedAndTheOrderHolds() {
        long before = Losses.parents();
        int count = HandOvers.MORE_MAX + 3;
        for (int at = 0; at < count; at++) {
            offerRecorded(task);
        }
        for (int at = 0; at < HandOvers.MORE_MAX; at++) {
            runOne(queue.poll());
        }
        assertEquals(HandOvers.MORE_MAX, seen.stream().filter(Objects::nonNull).count());
        Context next = offerRecorded(task);
        seen.clear();
        runAll();
        assertEquals(4, seen.size());
        assertEquals(
                List.of(next.span()),
                seen.subList(1, 4).stream()
                        .filter(Objects::nonNull)
                        .map(Context::span)
                        .toList());
        assertEquals(2, Losses.parents() - before);
    }

    private void offer(Runnable what) {
        Tasks.offer(queue, what);
    }

    private Context offerRecorded(Runnable what) {
        return recorded(() -> Tasks.offer(queue, what));
    }

    /** Runs the action as if inside a call, but records no event, so that no ring fills up. */
    private static Context recorded(Runnable what) {
        Context context = Context.local(1, 2, SPANS.incrementAndGet(), 3);
        Context before = Recorder.attach(context);
        what.run();
        Recorder.detach(before);
        return context;
    }

    private void runAll() {
        Object next = queue.poll();
        while (next != null) {
            runOne(next);
            next = queue.poll();
        }
    }

    private void runOne(Object what) {
        Tasks.run((Runnable) what, queue, WORKER);
    }

    private void assertSeen(Context... expected) {
        assertEquals(spans(Arrays.asList(expected)), spans(seen));
    }

    private static List<Long> spans(List<Context> contexts) {
        List<Long> spans = new ArrayList<>();
        contexts.forEach(each -> spans.add(each == null ? null : (Long) each.span()));
        return spans;
    }
}
