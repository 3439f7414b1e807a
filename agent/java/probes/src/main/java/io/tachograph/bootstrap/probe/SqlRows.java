package io.tachograph.bootstrap.probe;

/**
 * Skips the simple values after a value of a list, and the rows of simple values after a row,
 * without a token for each. The rules are the patterns {@code ROWS} and {@code ITEMS} of {@code
 * sql.js} and {@code sql.py}. A value is simple if all dialects read it in the same way and a comma
 * or a bracket follows.
 */
final class SqlRows {
    private static final String[] WORDS = {"null", "true", "false", "default"};

    private SqlRows() {}

    /**
     * @param at position behind a row
     * @return position behind the last row of values that follows it
     */
    static int rows(String text, int at) {
        int passed = at;
        int to = blanks(text, at);
        while (charAt(text, to) == ',') {
            to = blanks(text, to + 1);
            to = charAt(text, to) == '(' ? value(text, to + 1) : -1;
            while (charAt(text, to) == ',') {
                to = value(text, to + 1);
            }
            if (charAt(text, to) != ')') {
                break;
            }
            passed = to + 1;
            to = blanks(text, passed);
        }
        return passed;
    }

    /**
     * @param at position behind a value
     * @return position behind the last value that follows it
     */
    static int items(String text, int at) {
        int passed = at;
        while (charAt(text, passed) == ',') {
            int to = value(text, passed + 1);
            char next = charAt(text, to);
            if (next != ',' && next != ')') {
                break;
            }
            passed = to;
        }
        return passed;
    }

    /**
     * @return end of the simple value that begins at {@code at}, including white space; -1 if there
     *     is none
     */
    private static int value(String text, int at) {
        int from = blanks(text, at);
        char c = charAt(text, from);
        char next = charAt(text, from + 1);
        int to = -1;
        if (isDigit(c) || (c == '-' || c == '+') && isDigit(next)) {
            to = number(text, from + 1);
        } else if (c == '\'') {
            to = string(text, from);
        } else if (next == '\'') {
            to = "bBeEnNxX".indexOf(c) >= 0 ? string(text, from + 1) : -1;
        } else if (c == '?') {
            to = from + 1;
        } else if (c == '%') {
            to = next == 's' ? from + 2 : -1;
        } else if (c == '$' || c == ':' || c == '@') {
            int end = name(text, from + 1);
            to = end > from + 1 ? end : -1;
        } else {
            to = word(text, from);
        }
        return to < 0 ? -1 : blanks(text, to);
    }

    private static int number(String text, int at) {
        int to = at;
        while (to < text.length()) {
            char c = text.charAt(to);
            char next = charAt(text, to + 1);
            if ((c == 'e' || c == 'E') && (next == '-' || next == '+')) {
                to++;
            } else if (c != '.' && !isNameChar(c)) {
                break;
            }
            to++;
        }
        return to;
    }

    private static int string(String text, int at) {
        if (text.startsWith("'''", at)) {
            return -1;
        }
        for (int to = at + 1; to < text.length(); to++) {
            char c = text.charAt(to);
            if (c == '\\') {
                return -1;
            } else if (c == '\'') {
                if (charAt(text, to + 1) != '\'') {
                    return to + 1;
                }
                to++;
            }
        }
        return -1;
    }

    private static int name(String text, int at) {
        int to = at;
        while (isNameChar(charAt(text, to))) {
            to++;
        }
        return to;
    }

    private static int word(String text, int at) {
        for (String word : WORDS) {
            if (text.regionMatches(true, at, word, 0, word.length())) {
                return at + word.length();
            }
        }
        return -1;
    }

    private static int blanks(String text, int at) {
        int to = at;
        while (charAt(text, to) == ' ' || charAt(text, to) >= '\t' && charAt(text, to) <= '\r') {
            to++;
        }
        return to;
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private static boolean isNameChar(char c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_';
    }

    /** @return the character; 0 past the end, and at -1 */
    private static char charAt(String text, int at) {
        return at >= 0 && at < text.length() ? text.charAt(at) : '\0';
    }
}
