package observed;

import io.tachograph.overhead.CpuClock;

/**
 * The observed program: a recursion that only spends processor time. It has the shape of MooBench
 * (Waller, Fittkau, Hasselbring, 2014), so that figures can be compared. This package has no other
 * class, because some frameworks record the whole package.
 */
public final class Monitored {

    /**
     * @param methodTimeNs minimum processor time of the innermost call. With 0 the call only reads
     *     {@link System#nanoTime} twice
     * @param depth calls in one trace
     * @return the time at the end, to prevent optimisation
     */
    public long monitoredMethod(long methodTimeNs, int depth) {
        if (depth > 1) {
            return monitoredMethod(methodTimeNs, depth - 1);
        }
        if (methodTimeNs > 0) {
            return CpuClock.spend(methodTimeNs);
        }
        long end = System.nanoTime();
        long now;
        do {
            now = System.nanoTime();
        } while (now < end);
        return now;
    }
}
