package bulletinboard.service;

import bulletinboard.model.Draft;

/** The limits of an advertisement's fields. */
final class DraftCheck {
    static final int TITLE_CHARS_MAX = 120;
    static final int TEXT_CHARS_MAX = 4_000;
    static final int CONTACT_CHARS_MAX = 200;
    static final long PRICE_CENTS_MAX = 1_000_000_000_00L;

    private DraftCheck() {}

    /**
     * @throws InvalidInputException if a field is empty, too long or out of range, or
     *     contains U+0000
     */
    static Draft check(Draft draft) {
        checkText("title", draft.title(), TITLE_CHARS_MAX);
        checkText("text", draft.text(), TEXT_CHARS_MAX);
        checkText("contact", draft.contact(), CONTACT_CHARS_MAX);
        if (draft.priceCents() < 0 || draft.priceCents() > PRICE_CENTS_MAX) {
            throw new InvalidInputException(
                    "price must be between 0 and " + PRICE_CENTS_MAX / 100);
        }
        return draft;
    }

    private static void checkText(String name, String value, int charsMax) {
        if (value.isBlank()) {
            throw new InvalidInputException(name + " must not be empty");
        }
        if (value.length() > charsMax) {
            throw new InvalidInputException(
                    name
                            + " has "
                            + value.length()
                            + " characters, at most "
                            + charsMax
                            + " are allowed");
        }
        if (value.indexOf('\0') >= 0) {
            throw new InvalidInputException(name + " must not contain the character U+0000");
        }
    }
}
