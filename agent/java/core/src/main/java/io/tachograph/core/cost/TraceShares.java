package io.tachograph.core.cost;

import java.util.Arrays;

/**
 * How many traces a second each entry operation may keep: max-min fair shares (Bertsekas and
 * Gallager, Data Networks, 1992, sec. 6.5.2). Who wants less than an equal part gets all of it;
 * what is left over is divided among the others in the same way. So a hot operation never takes
 * from a rare one.
 */
final class TraceShares {
    private TraceShares() {}

    /**
     * @param budget of all, a second
     * @param wanted by each, a second
     * @return what each gets: never more than it wants, together never more than the budget
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
