package io.tachograph.bootstrap.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class LaterAnswerTest {
    private static final long PATIENCE_S = 120;

    /** An interface of a server's API. The tests implement it, as a wrapper class would. */
    public interface Response {
        int getStatus();
    }

    /** Slow code of the program does not block other threads that work for the request. */
    @Test
    void codeOfTheProgramRunsOutsideTheMonitor() throws Exception {
        LaterAnswer answer = new LaterAnswer("GET", "/later-answer");
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch failed = new CountDownLatch(1);
        boolean[] wasFree = new boolean[1];
        Response slow =
                () -> {
                    asked.countDown();
                    wasFree[0] = await(failed);
                    return 503;
                };
        answer.answeredBy(Response.class, slow);
        Thread ending = new Thread(answer::end);
        ending.start();
        assertTrue(await(asked));
        assertFalse(answer.hasEnded());
        Thread failing =
                new Thread(
                        () -> {
                            answer.failed(new IllegalStateException());
                            failed.countDown();
                        });
        failing.start();
        ending.join();
        failing.join();
        assertTrue(wasFree[0]);
        assertTrue(answer.hasEnded());
        assertEquals(503, answer.status());
    }

    @Test
    void theFirstEndCountsAndAResponseThatThrowsHasNoStatus() {
        LaterAnswer answer = new LaterAnswer("GET", "/later-answer");
        Response broken =
                () -> {
                    throw new IllegalStateException();
                };
        answer.answeredBy(Response.class, broken);
        answer.end();
        Response good = () -> 200;
        answer.answeredBy(Response.class, good);
        answer.end();
        assertTrue(answer.hasEnded());
        assertEquals(0, answer.status());
    }

    private static boolean await(CountDownLatch latch) {
        try {
            return latch.await(PATIENCE_S, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            return false;
        }
    }
}
