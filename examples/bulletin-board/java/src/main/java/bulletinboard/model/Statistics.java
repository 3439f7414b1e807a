package bulletinboard.model;

import java.time.Instant;

/**
 * Figures of the whole board. Prices are in hundredths. If the board is empty, all figures except
 * {@code count} are null or zero.
 */
public record Statistics(
        long count,
        long priceCentsMin,
        long priceCentsMax,
        double priceCentsMean,
        Instant oldest,
        Instant newest) {}
