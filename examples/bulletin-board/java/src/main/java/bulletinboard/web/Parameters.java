package bulletinboard.web;

import bulletinboard.model.Draft;
import bulletinboard.model.Page;
import bulletinboard.model.WholeNumber;
import bulletinboard.service.InvalidInputException;

import org.eclipse.jetty.util.Fields;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import java.util.Set;

final class Parameters {
    private static final int PAGE_NUMBER_MAX = 1_000_000;
    private static final int PAGE_SIZE_DEFAULT = 20;
    private static final int PAGE_SIZE_MAX = 200;
    private static final int WORD_CHARS_MAX = 100;
    private static final int PRICE_CHARS_MAX = 20;

    private final Fields fields;

    /**
     * @throws InvalidInputException if a parameter is not in {@code known} or has several values
     */
    Parameters(Fields fields, Set<String> known) {
        for (Fields.Field field : fields) {
            if (!known.contains(field.getName())) {
                throw new InvalidInputException("unknown parameter " + field.getName());
            }
            List<String> values = field.getValues();
            if (values.size() > 1) {
                throw new InvalidInputException(
                        "parameter " + field.getName() + " is given " + values.size() + " times");
            }
        }
        this.fields = fields;
    }

    Page page() {
        return new Page(
                integer("page", 1, PAGE_NUMBER_MAX, 1),
                integer("size", 1, PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT));
    }

    String word() {
        String word = required("word").strip();
        if (word.isEmpty() || word.length() > WORD_CHARS_MAX || word.indexOf('\0') >= 0) {
            throw new InvalidInputException(
                    "word must have 1 to " + WORD_CHARS_MAX + " characters, none of them U+0000");
        }
        return word;
    }

    Draft draft() {
        return new Draft(required("title"), required("text"), required("contact"), priceCents());
    }

    private long priceCents() {
        String text = required("price");
        try {
            // An exponent is refused, because 1e999999999 as an integer would fill the memory.
            if (text.length() <= PRICE_CHARS_MAX
                    && text.indexOf('e') < 0
                    && text.indexOf('E') < 0) {
                return new BigDecimal(text)
                        .setScale(2, RoundingMode.UNNECESSARY)
                        .unscaledValue()
                        .longValueExact();
            }
        } catch (ArithmeticException | NumberFormatException e) {
            // Reported below: not a number, more than two decimals, or outside the range of a long.
        }
        throw new InvalidInputException(
                "price must be a number with at most two decimals and "
                        + PRICE_CHARS_MAX
                        + " characters, without an exponent, got "
                        + text);
    }

    private int integer(String name, int min, int max, int otherwise) {
        String text = fields.getValue(name);
        return text == null
                ? otherwise
                : WholeNumber.parse(name, text, min, max, InvalidInputException::new);
    }

    private String required(String name) {
        String value = fields.getValue(name);
        if (value == null) {
            throw new InvalidInputException("parameter " + name + " is missing");
        }
        return value;
    }
}
