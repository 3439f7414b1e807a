package io.tachograph.core.send;

import io.tachograph.core.wire.ProbeRules;

/**
 * Between the link and the switchboard: the newest rules one way, the newest answer the other. Only
 * the newest counts, so neither waits for the other and nothing queues up.
 */
public final class ProbeMailbox {
    private ProbeRules rules;
    private byte[] answer;
    private boolean poked;

    /** Rules came, or a server that has none was reached. What was not answered yet is void. */
    synchronized void put(ProbeRules came) {
        rules = came;
        answer = null;
        notifyAll();
    }

    /** The rules that came since the last look; null if none did within the time. */
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

    /** Ends {@link #await} early: there is something else to do. */
    public synchronized void poke() {
        poked = true;
        notifyAll();
    }

    /** To be sent when the server is one that understands it. Void when newer rules have come. */
    public synchronized void answer(byte[] frame) {
        if (rules == null) {
            answer = frame;
        }
    }

    /** The frame to send; null if there is none. */
    synchronized byte[] takeAnswer() {
        byte[] frame = answer;
        answer = null;
        return frame;
    }
}
