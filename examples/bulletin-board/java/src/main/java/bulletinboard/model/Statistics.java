package bulletinboard.model;

import java.time.Instant;

/**
 * Figures over the whole board. Prices are in hundredths; all but {@code count} are null or zero on
 * an empty board.
 */
public record Statistics(
        long count,
        long priceCentsMin,
        long priceCentsMax,
        double priceCentsMean,
        Instant oldest,
        Instant newest) {}
