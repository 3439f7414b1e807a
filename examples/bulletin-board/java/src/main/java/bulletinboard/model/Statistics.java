package bulletinboard.model;

import java.time.Instant;

/**
 * Figures of the whole board. Prices are in hundredths; all but {@code count} are null or zero for
 * an empty board.
 */
public record Statistics(
        long count,
        long priceCentsMin,
        long priceCentsMax,
        double priceCentsMean,
        Instant oldest,
        Instant newest) {}
