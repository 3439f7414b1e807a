package bulletinboard.model;

import java.util.function.Function;

public final class WholeNumber {
    private WholeNumber() {}

    /**
     * @param name used in the message
     * @param refusal creates the exception from the message if {@code text} is invalid
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
            // Reported below.
        }
        throw refusal.apply(
                name + " must be a whole number between " + min + " and " + max + ", got " + text);
    }
}
