package io.tachograph.core.send;

import io.tachograph.core.wire.ProbeRules;

/**
 * Exchanges rules and answers between the connection and the switchboard. It holds only the newest
 * rules and the newest answer, so a writer never waits, and no queue builds up.
 */
public final class ProbeMailbox {
    private ProbeRules rules;
    private byte[] answer;
    private boolean poked;

    /** Stores new rules, which may be an empty list. A pending answer is discarded. */
    synchronized void put(ProbeRules came) {
        rules = came;
        answer = null;
        notifyAll();
    }

    /**
     * Waits for new rules and returns them; null if {@link #poke} ends the wait, or if none arrive
     * within the time.
     */
    public synchronized ProbeRules await(long nanos) throws InterruptedException {
        long until = System.nanoTime() + nanos;
        long left = nanos;
        while (rules == null && !poked && left > 0) {
            wait(left / 1_000_000, (int) (left % 1_000_000));
            left = until - System.nanoTime();
        }
        poked = false;
        ProbeRules came = rules;
        rules = null;
        return came;
    }

    /** Ends {@link #await} early, because there is other work. */
    public synchronized void poke() {
        poked = true;
        notifyAll();
    }

    /** Stores an answer, or discards it if newer rules have arrived. */
    public synchronized void answer(byte[] frame) {
        if (rules == null) {
            answer = frame;
        }
    }

    /** Null if there is no answer to send. */
    synchronized byte[] takeAnswer() {
        byte[] frame = answer;
        answer = null;
        return frame;
    }
}
