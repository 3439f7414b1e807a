package bulletinboard.model;

import java.util.function.Function;

/** Text in, a number within its limits out. */
public final class WholeNumber {
    private WholeNumber() {}

    /**
     * @param name what the message calls it
     * @param refusal makes of the message what is thrown when {@code text} is no such number
     */
    public static int parse(
            String name,
            String text,
            int min,
            int max,
            Function<String, RuntimeException> refusal) {
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Told below, together with numbers out of range.
        }
        throw refusal.apply(
                name + " must be a whole number between " + min + " and " + max + ", got " + text);
    }
}
