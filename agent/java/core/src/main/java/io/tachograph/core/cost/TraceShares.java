package io.tachograph.core.cost;

import java.util.Arrays;

/**
 * Divides the traces per second among the entry operations, with which traces begin, by max-min
 * fairness (Bertsekas and Gallager, Data Networks, 1992, sec. 6.5.2). An operation that needs less
 * than an equal part gets all it needs. The remainder is divided among the other operations in the
 * same way.
 */
final class TraceShares {
    private TraceShares() {}

    /**
     * @param budget total per second
     * @param wanted demand of each operation, per second
     * @return the share of each operation: at most its demand, and in total at most the budget
     */
    static double[] of(double budget, double[] wanted) {
        Integer[] byWish = new Integer[wanted.length];
        Arrays.setAll(byWish, at -> at);
        Arrays.sort(byWish, (a, b) -> Double.compare(wanted[a], wanted[b]));
        double[] shares = new double[wanted.length];
        double left = Math.max(0, budget);
        int others = wanted.length;
        for (int at : byWish) {
            shares[at] = Math.min(wanted[at], left / others);
            left -= shares[at];
            others--;
        }
        return shares;
    }
}
