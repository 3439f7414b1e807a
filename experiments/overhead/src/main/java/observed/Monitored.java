package observed;

import io.tachograph.overhead.CpuClock;

/**
 * The program that is watched: recursion that does nothing but wait. The shape is that of MooBench
 * (Waller, Fittkau, Hasselbring, 2014), so that figures can be compared. Nothing else in this
 * package: frameworks are told to watch it.
 */
public final class Monitored {

    /**
     * @param methodTimeNs processor time of the innermost call at least; with 0 it reads the wall
     *     clock twice and no more, so that the watching alone is measured
     * @param depth calls in one trace
     * @return the time at the end, so that nothing is optimised away
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
