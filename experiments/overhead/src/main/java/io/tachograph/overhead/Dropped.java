package io.tachograph.overhead;

/**
 * Number of dropped calls, which only the agent of Tachograph reports. The class of the agent is
 * looked up by name, because this program also runs without an agent.
 */
final class Dropped {
    private static final String RECORDER = "io.tachograph.bootstrap.Recorder";

    private Dropped() {}

    /** -1 if unknown. */
    static long ofThisThread() {
        try {
            Object buffer = Class.forName(RECORDER, true, null).getMethod("buffer").invoke(null);
            return (long) buffer.getClass().getMethod("callsDropped").invoke(buffer);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return -1;
        }
    }
}
