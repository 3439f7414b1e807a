package bulletinboard.model;

import java.time.Instant;

/**
 * One advertisement of the board. {@code priceCents} is in hundredths of the currency unit.
 */
public record Advertisement(
        long id, String title, String text, String contact, long priceCents, Instant created) {}
