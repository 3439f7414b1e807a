package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.tachograph.bootstrap.Context;
import io.tachograph.bootstrap.Recorder;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

class TasksTest {
    @Test
    void aTaskHandedOverTwiceRemembersBoth() {
        Object task = new Object();
        Context first = handOver(task);
        Context second = handOver(task);
        assertEquals(first.span(), Tasks.take(task).span());
        assertEquals(second.span(), Tasks.take(task).span());
        assertNull(Tasks.take(task));
    }

    @Test
    void aTaskThatNeverRunsGathersNoMoreThanTheBound() {
        Object task = new Object();
        for (int at = 0; at <= Tasks.TIMES_MAX; at++) {
            handOver(task);
        }
        for (int at = 0; at < Tasks.TIMES_MAX; at++) {
            assertNotNull(Tasks.take(task));
        }
        assertNull(Tasks.take(task));
    }

    @Test
    void whatNobodyRecordedIsNotRemembered() {
        Object task = new Object();
        Tasks.handOver(task);
        assertNull(Tasks.take(task));
        Tasks.handOver(null);
    }

    @Test
    void theOriginHoldsWhileTheTaskRunsEvenIfItThrows() {
        List<Context> seen = new ArrayList<>();
        Runnable task =
                () -> {
                    seen.add(Recorder.context());
                    throw new IllegalStateException("as planned");
                };
        Context origin = handOver(task);
        try {
            Tasks.run(task);
        } catch (IllegalStateException e) {
            assertNull(Recorder.context());
        }
        assertEquals(origin.span(), seen.get(0).span());
    }

    private static Context handOver(Object task) {
        int call = Recorder.enter(Recorder.operation(1, "hand over"));
        Tasks.handOver(task);
        Context context = Recorder.context();
        Recorder.exit(call);
        return context;
    }
}
