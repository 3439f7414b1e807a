package bulletinboard.model;

import java.time.Instant;

/** {@code priceCents} is in hundredths of the currency unit. */
public record Advertisement(
        long id, String title, String text, String contact, long priceCents, Instant created) {}
