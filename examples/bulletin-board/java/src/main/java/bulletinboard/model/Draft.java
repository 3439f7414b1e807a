package bulletinboard.model;

/** An advertisement as its author sends it: checked, but without an id and a time yet. */
public record Draft(String title, String text, String contact, long priceCents) {}
