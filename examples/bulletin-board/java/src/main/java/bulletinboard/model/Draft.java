package bulletinboard.model;

/** An advertisement as sent by its author, without id and time. */
public record Draft(String title, String text, String contact, long priceCents) {}
