package io.tachograph.core.send;

import io.tachograph.bootstrap.AdviceFaults;
import io.tachograph.core.log.AgentLog;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Logs, on the sender's thread, exceptions that advice has thrown: at most one a minute for each
 * place (probe and advice class).
 *
 * <p>Before: {@link AdviceFaults}.
 */
final class FaultLog {
    private static final int FRAMES_MAX = 4;
    private static final MethodHandle STACK_TRACE = stackTrace();

    private final AgentLog log;
    private final long[] told = new long[AdviceFaults.PLACES_MAX];

    FaultLog(AgentLog log) {
        this.log = log;
    }

    /** Logs the latest exception of each place that has failed since the last call. */
    void tell() {
        int end = AdviceFaults.size();
        for (int at = 0; at < end; at++) {
            long count = AdviceFaults.count(at);
            Throwable thrown = count == told[at] ? null : AdviceFaults.take(at);
            if (thrown != null) { // null if it was already taken, or is not visible yet
                told[at] = count;
                tell(AdviceFaults.place(at), count, thrown);
            }
        }
    }

    private void tell(AdviceFaults.Place place, long count, Throwable thrown) {
        String where = "probe " + place.probe + ", " + place.advice;
        if (log.wouldSay(where)) {
            log.sayOnce(
                    where,
                    where
                            + ": failed, records are missing; count = "
                            + count
                            + ", last = "
                            + ExceptionText.of(thrown)
                            + frames(thrown));
        }
    }

    /**
     * Calls {@code getStackTrace} of {@code Throwable} itself, because the program may override the
     * method.
     */
    private static String frames(Throwable thrown) {
        StringBuilder text = new StringBuilder();
        try {
            StackTraceElement[] frames = (StackTraceElement[]) STACK_TRACE.invokeExact(thrown);
            for (int at = 0; at < Math.min(FRAMES_MAX, frames.length); at++) {
                text.append(at == 0 ? ", at " : " < ").append(frames[at]);
            }
        } catch (Throwable e) {
            // The line is written without frames.
        }
        return text.toString();
    }

    private static MethodHandle stackTrace() {
        try {
            return MethodHandles.privateLookupIn(Throwable.class, MethodHandles.lookup())
                    .findSpecial(
                            Throwable.class,
                            "getStackTrace",
                            MethodType.methodType(StackTraceElement[].class),
                            Throwable.class);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return MethodHandles.dropArguments(
                    MethodHandles.constant(StackTraceElement[].class, new StackTraceElement[0]),
                    0,
                    Throwable.class);
        }
    }
}
