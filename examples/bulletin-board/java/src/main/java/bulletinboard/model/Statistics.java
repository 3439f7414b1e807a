package bulletinboard.model;

import java.time.Instant;

/**
 * Prices are in hundredths of the currency unit. If the board is empty, all numbers are zero and
 * the times are null.
 */
public record Statistics(
        long count,
        long priceCentsMin,
        long priceCentsMax,
        double priceCentsMean,
        Instant oldest,
        Instant newest) {}
