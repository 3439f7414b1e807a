package observed;

/**
 * The program that is measured: recursion that does nothing but wait. The shape is that of MooBench
 * (Waller, Ehmke, Hasselbring, "Including performance benchmarks into continuous integration",
 * 2015), so that figures can be compared.
 */
public final class Monitored {

    /**
     * @param methodTimeNs how long the innermost call lasts at least; 0 measures the watching alone
     * @param depth calls in one trace
     * @return the time at the end, so that nothing is optimised away
     */
    public long monitoredMethod(long methodTimeNs, int depth) {
        if (depth > 1) {
            return monitoredMethod(methodTimeNs, depth - 1);
        }
        long end = System.nanoTime() + methodTimeNs;
        long now;
        do {
            now = System.nanoTime();
        } while (now < end);
        return now;
    }
}
