package io.tachograph.bootstrap.probe;

import java.util.Locale;

/**
 * A statement's text in, its shape out: literals become {@code ?}, white space one blank, comments
 * nothing, and lists of values one value, so that statements that differ only in data are one
 * operation and no data leaves the process.
 *
 * <p>Knows what the common dialects agree on: {@code 'it''s'}, {@code E'\''}, {@code
 * $tag$...$tag$}, {@code "name"}, {@code `name`}, {@code [name]}, {@code -- ...}, {@code /* ...
 * *}{@code /}, {@code :name}, {@code $1}. A text that ends inside a literal is taken as if it were
 * closed there.
 */
final class Sql {
    /** Characters of a name; what is longer is cut. */
    static final int NAME_CHARS_MAX = 1_000;

    /** Characters that are read; a bulk insert may have megabytes. */
    private static final int TEXT_CHARS_MAX = 20_000;

    /** What the second and later rows of a bulk insert become. */
    private static final String ROWS = "), ...";

    private final String text;
    private final int end;
    private final StringBuilder shape;
    private int at;

    private Sql(String text) {
        this.text = text;
        this.end = Math.min(text.length(), TEXT_CHARS_MAX);
        this.shape = new StringBuilder(Math.min(end, NAME_CHARS_MAX) + 16);
    }

    /**
     * @return never null, at most {@link #NAME_CHARS_MAX} characters
     */
    static String shape(String text) {
        return text == null ? "" : new Sql(text).run();
    }

    private String run() {
        while (at < end && shape.length() < NAME_CHARS_MAX) {
            step();
        }
        boolean isCut = at < text.length() || shape.length() > NAME_CHARS_MAX;
        int rows = shape.lastIndexOf(ROWS);
        if (isCut && rows >= 0) {
            // Cut inside a bulk insert: where exactly depends on the data.
            shape.setLength(rows + ROWS.length());
            return shape.toString();
        }
        int length = shape.length();
        while (length > 0 && (shape.charAt(length - 1) == ' ' || shape.charAt(length - 1) == ';')) {
            length--;
        }
        shape.setLength(Math.min(length, isCut ? NAME_CHARS_MAX - 3 : NAME_CHARS_MAX));
        return isCut ? shape.append("...").toString() : shape.toString();
    }

    private void step() {
        char c = text.charAt(at);
        if (Character.isWhitespace(c)) {
            at++;
            blank();
        } else if (c == '-' && next() == '-' || c == '/' && next() == '*') {
            comment(c);
        } else if (c == '\'') {
            string(false);
        } else if (c == '"' || c == '`') {
            quotedName(c);
        } else if (c == '$') {
            dollar();
        } else if (c >= '0' && c <= '9') {
            number();
        } else if (Character.isLetter(c) || c == '_') {
            word();
        } else {
            at++;
            sign(c);
        }
    }

    private char next() {
        return at + 1 < end ? text.charAt(at + 1) : '\0';
    }

    private void blank() {
        int length = shape.length();
        if (length > 0 && shape.charAt(length - 1) != ' ' && shape.charAt(length - 1) != '(') {
            shape.append(' ');
        }
    }

    private void sign(char c) {
        if (c == ',' || c == ')') {
            dropBlank();
        }
        if (c == ')') {
            foldRow();
        } else if (c == '?') {
            value();
        } else {
            shape.append(c);
        }
        if (c == ',') {
            shape.append(' ');
        }
    }

    private void dropBlank() {
        int length = shape.length();
        if (length > 0 && shape.charAt(length - 1) == ' ') {
            shape.setLength(length - 1);
        }
    }

    /**
     * A literal or a parameter. In a list of values after {@code in (} the first one stands for
     * all.
     */
    private void value() {
        if (endsWith("?, ") && isInList()) {
            shape.setLength(shape.length() - 2);
        } else {
            shape.append('?');
        }
    }

    private boolean isInList() {
        int open = shape.length() - "?, ".length() - 1;
        return open >= 0 && shape.charAt(open) == '(' && isWordBefore(open, "in");
    }

    private boolean isWordBefore(int position, String word) {
        int to = position;
        while (to > 0 && shape.charAt(to - 1) == ' ') {
            to--;
        }
        int from = to - word.length();
        if (from < 0 || from > 0 && Character.isLetterOrDigit(shape.charAt(from - 1))) {
            return false;
        }
        return shape.substring(from, to).toLowerCase(Locale.ROOT).equals(word);
    }

    /** Closes a bracket; {@code (?, ?), (?, ?)} of a bulk insert becomes {@code (?, ?), ...}. */
    private void foldRow() {
        shape.append(')');
        int open = shape.lastIndexOf("(");
        int length = shape.length() - open;
        if (open < 0 || !isRowOfValues(open)) {
            return;
        }
        if (open >= 5
                && shape.charAt(open - 1) == ' '
                && shape.substring(0, open).endsWith("..., ")) {
            shape.setLength(open - 2);
        } else if (open >= length + 2
                && shape.substring(open - length - 2, open)
                        .contentEquals(shape.substring(open) + ", ")) {
            shape.setLength(open);
            shape.append("...");
        }
    }

    private boolean isRowOfValues(int open) {
        for (int i = open + 1; i < shape.length() - 1; i++) {
            char c = shape.charAt(i);
            if (c != '?' && c != ',' && c != ' ') {
                return false;
            }
        }
        return true;
    }

    private boolean endsWith(String tail) {
        int from = shape.length() - tail.length();
        return from >= 0 && shape.substring(from).equals(tail);
    }

    private void comment(char first) {
        int close = first == '-' ? text.indexOf('\n', at) : text.indexOf("*/", at + 2);
        at = close < 0 ? end : close + (first == '-' ? 1 : 2);
        blank();
    }

    /**
     * @param backslash whether a backslash protects the next character
     */
    private void string(boolean backslash) {
        at++;
        while (at < end) {
            char c = text.charAt(at++);
            if (c == '\\' && backslash) {
                at++;
            } else if (c == '\'') {
                if (at < end && text.charAt(at) == '\'') {
                    at++;
                } else {
                    break;
                }
            }
        }
        value();
    }

    private void quotedName(char quote) {
        int close = text.indexOf(quote, at + 1);
        int to = close < 0 ? end : Math.min(end, close + 1);
        shape.append(text, at, to);
        at = to;
    }

    /** {@code $1} is a parameter, {@code $tag$...$tag$} a string; else it is part of a name. */
    private void dollar() {
        int to = at + 1;
        while (to < end && (Character.isLetterOrDigit(text.charAt(to)) || text.charAt(to) == '_')) {
            to++;
        }
        if (to < end && text.charAt(to) == '$') {
            String tag = text.substring(at, to + 1);
            int close = text.indexOf(tag, to + 1);
            at = close < 0 ? end : close + tag.length();
        } else {
            at = to;
        }
        value();
    }

    private void number() {
        while (at < end) {
            char c = text.charAt(at);
            boolean isSignOfExponent = (c == '+' || c == '-') && isExponent(text.charAt(at - 1));
            if (!Character.isLetterOrDigit(c) && c != '.' && c != '_' && !isSignOfExponent) {
                break;
            }
            at++;
        }
        value();
    }

    private boolean isExponent(char c) {
        return c == 'e' || c == 'E';
    }

    private void word() {
        int from = at;
        while (at < end
                && (Character.isLetterOrDigit(text.charAt(at))
                        || "_$#".indexOf(text.charAt(at)) >= 0)) {
            at++;
        }
        if (at < end && text.charAt(at) == '\'' && at - from == 1) {
            char prefix = text.charAt(from); // E'..', N'..', X'..', B'..'
            string(prefix == 'E' || prefix == 'e');
        } else {
            shape.append(text, from, at);
        }
    }
}
