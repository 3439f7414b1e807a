package io.tachograph.bootstrap.probe;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Builds the shape of a statement from its tokens. White space becomes one blank, rows and lists of
 * values are folded, and long text is cut. The rules are those of {@code sql-shape.js} and {@code
 * sql_shape.py}. Before: {@link Sql}, which reads the tokens.
 */
final class SqlShape {
    /** Maximum length of a shape, in characters. */
    static final int NAME_CHARS_MAX = 1_000;

    /** End of the first row of a bulk insert, and {@code ...} for the later rows. */
    private static final String ROWS = "), ...";

    /** Part of a pattern: a character that folding treats as part of a name. */
    private static final String NAME = "[A-Za-z0-9_\\x80-\\x{10ffff}]";

    private static final String NO_NAME = "[^A-Za-z0-9_\\x80-\\x{10ffff}]";

    /**
     * One value of a list: a literal, a parameter, or a word in place of a value, perhaps with a
     * sign, a type or a cast.
     */
    private static final Pattern ITEM =
            words(
                    "[-+]? ?(?:(?:date|time|timestamp|interval) )?"
                            + "(?::?\\?|null|true|false|default|[:@]"
                            + NAME
                            + "+)(?:::"
                            + NAME
                            + "+(?:\\[\\])?)?");

    /** Text before a list of values or a row: {@code in}, {@code values}, a row or a bracket. */
    private static final Pattern BEFORE_ITEMS =
            words(
                    ("(?:^|NO_NAME)(in) ?\\z|(?:(?:^|NO_NAME)values? ?|\\)(?:, \\.\\.\\.)?, )"
                                    + "(row ?)?\\z|\\(\\z")
                            .replace("NO_NAME", NO_NAME));

    private static final int BEFORE_ITEMS_CHARS = 12;

    /** A row in which every value is {@code ?}. */
    private static final Pattern ROW = words("(?:row ?)?\\([?, ]*\\)");

    private static final Pattern VALUES = words("(?:^|" + NO_NAME + ")values? ?\\z");
    private static final Pattern ARRAY = words("\\[\\?(?:, \\?)+\\]");

    /** The words after which SQLite reads a text in double quotes as a table name. */
    private static final Pattern BEFORE_TABLE =
            words("(?:^|" + NO_NAME + ")(?:(?<!distinct )from|join|into|update|table) \\z");

    private static final Pattern BEFORE_ALIAS = words(NO_NAME + "as \\z");
    private static final Pattern TABLE = words(" [^ ()]+ ?");
    private static final Pattern BEFORE_PASSWORD =
            words(
                    "(?:^|"
                            + NO_NAME
                            + ")(?:identified (?:by|by \\? replace"
                            + "|(?:with|via) [^ ]+ (?:as|by|using))"
                            + "|pragma (?:[^ ]+\\.)?(?:hex|text)?(?:re)?key ?[=(]) ?\\z");

    /** Kinds of the content of a bracket. */
    private static final int OTHER = 0;

    private static final int LIST = 1;
    private static final int ROW_OF_VALUES = 2;

    private final StringBuilder out;

    /** The open brackets. Each has three numbers: position, start of the row, kind of content. */
    private int[] open = new int[24];

    private int opened;

    /** Start of the current value of a list. */
    private int item;

    /** End of the last {@code into}; -1 after a bracket was opened. */
    private int into = -1;

    /**
     * Number of open brackets in the column list of an insert, including the bracket of the list; 0
     * outside of a column list.
     */
    private int columns;

    /** True after a word that may precede a password. */
    private boolean isSecret;

    private final Matcher items;
    private final Matcher beforeItems;
    private final Matcher rows;

    SqlShape(int textChars) {
        out = new StringBuilder(Math.min(textChars, NAME_CHARS_MAX) + 16);
        items = ITEM.matcher(out);
        beforeItems = BEFORE_ITEMS.matcher(out);
        rows = ROW.matcher(out);
    }

    private static Pattern words(String pattern) {
        return Pattern.compile(pattern, Pattern.CASE_INSENSITIVE);
    }

    int length() {
        return out.length();
    }

    void blank() {
        if (out.length() > 0 && last() != ' ' && last() != '(') {
            out.append(' ');
        }
    }

    void dropBlank() {
        if (out.length() > 0 && last() == ' ') {
            out.setLength(out.length() - 1);
        }
    }

    private char last() {
        return out.charAt(out.length() - 1);
    }

    void value() {
        out.append('?');
    }

    void sign(char sign) {
        out.append(sign);
        int from = sign == ']' ? out.lastIndexOf("[") : -1;
        if (from >= 0 && ARRAY.matcher(out).region(from, out.length()).matches()) {
            out.setLength(from);
            out.append("[?]");
        }
    }

    /**
     * Copies a name. After {@code identified by} and similar words, the name is a password and
     * becomes {@code ?}.
     */
    void name(String text, int from, int to) {
        if (isSecret && tail(BEFORE_PASSWORD, 80)) {
            value();
        } else {
            out.append(text, from, to);
            note(text, from, to - from);
        }
    }

    /**
     * Notes {@code into}, after which a column list may follow, and words after which a password
     * may follow.
     */
    private void note(String text, int from, int length) {
        if (length == 4 && text.regionMatches(true, from, "into", 0, length)) {
            into = out.length();
        } else if (length == 10 && text.regionMatches(true, from, "identified", 0, length)
                || length == 6 && text.regionMatches(true, from, "pragma", 0, length)) {
            isSecret = true;
        }
    }

    /**
     * True if only a name is possible here: the later part of a qualified name, an alias or a
     * column.
     */
    boolean isBeforeName() {
        int end = out.length();
        boolean isQualified = endsWith(".", end) && !endsWith("...", end);
        return columns == 1 || isQualified || tail(BEFORE_ALIAS, 4);
    }

    boolean isBeforeTable() {
        return tail(BEFORE_TABLE, 16);
    }

    /** True if the pattern is found in the last {@code count} characters. */
    private boolean tail(Pattern pattern, int count) {
        int to = out.length();
        return pattern.matcher(out).region(Math.max(0, to - count), to).find();
    }

    void openBracket() {
        int at = out.length();
        if (columns > 0) {
            columns++;
        } else if (into >= 0) {
            columns = TABLE.matcher(out).region(into, at).matches() ? 1 : 0;
            into = -1;
        }
        boolean isFound = beforeItems.region(Math.max(0, at - BEFORE_ITEMS_CHARS), at).find();
        boolean isList = isFound && beforeItems.start(1) >= 0;
        if (opened + 3 > open.length) {
            open = Arrays.copyOf(open, 2 * open.length);
        }
        open[opened] = at;
        open[opened + 1] = isFound && beforeItems.start(2) >= 0 ? beforeItems.start(2) : at;
        open[opened + 2] = isList ? LIST : isFound ? ROW_OF_VALUES : OTHER;
        opened += 3;
        out.append('(');
        item = out.length();
    }

    /** @return true if the closed bracket belongs to one of the rows that {@code ...} replaces */
    boolean closeBracket() {
        dropBlank();
        endItem();
        out.append(')');
        columns = Math.max(0, columns - 1);
        if (opened == 0) {
            return false;
        }
        opened -= 3;
        return foldRow(open[opened + 1]);
    }

    void comma() {
        out.append(", ");
        item = out.length();
    }

    /**
     * Ends a value of a list. After {@code in}, the first value replaces all values. In a row, each
     * value becomes {@code ?}.
     *
     * @return true if this value also replaces the following values
     */
    boolean endItem() {
        int holds = opened == 0 ? OTHER : open[opened - 1];
        int end = out.length();
        if (holds == OTHER || item > end) {
            return false;
        }
        boolean isValue = end == item + 1 && last() == '?';
        if (!isValue && !items.region(item, end).matches()) {
            return false;
        }
        int at = open[opened - 3];
        boolean isFirst = item == at + 1 || item == at + 4 && endsWith("(?, ", item);
        if (holds == LIST && isFirst) {
            out.setLength(at);
            out.append("(?");
        } else if (holds == ROW_OF_VALUES) {
            out.setLength(item);
            out.append('?');
        }
        return holds == LIST && isFirst;
    }

    /** Folds a bulk insert: {@code (?, ?), (?, ?)} becomes {@code (?, ?), ...}. */
    private boolean foldRow(int from) {
        int length = out.length() - from;
        boolean isPlain = rows.region(from, out.length()).matches();
        int afterRows = from - "..., ".length();
        boolean isAfterRows = endsWith("..., ", from);
        boolean isSameAsThose = isAfterRows && isRow(from, afterRows, length);
        if (isAfterRows && isPlain || isSameAsThose) {
            out.setLength(from - 2);
            return true;
        }
        int before = from - length - 2;
        if (isRow(from, from, length) && (isPlain || isAfterValues(before))) {
            out.setLength(from);
            out.append("...");
            return true;
        }
        return false;
    }

    /** True if a copy of the row at {@code row} and a comma with a blank precede {@code end}. */
    private boolean isRow(int row, int end, int length) {
        int from = end - length - 2;
        if (from < 0 || !endsWith(", ", end)) {
            return false;
        }
        for (int i = 0; i < length; i++) {
            if (out.charAt(from + i) != out.charAt(row + i)) {
                return false;
            }
        }
        return true;
    }

    private boolean isAfterValues(int position) {
        return VALUES.matcher(out).region(Math.max(0, position - 8), position).find();
    }

    private boolean endsWith(String tail, int position) {
        int from = position - tail.length();
        for (int i = 0; from >= 0 && i < tail.length(); i++) {
            if (out.charAt(from + i) != tail.charAt(i)) {
                return false;
            }
        }
        return from >= 0;
    }

    /** @param isWhole true if the statement was read to the end */
    String finish(boolean isWhole) {
        boolean isCut = !isWhole || out.length() > NAME_CHARS_MAX;
        int folded = isCut ? out.lastIndexOf(ROWS) : -1;
        if (folded >= 0) {
            // The place of the cut may depend on the data of a bulk insert, so the shape ends after
            // the folded rows.
            return out.substring(0, Math.min(folded + ROWS.length(), NAME_CHARS_MAX));
        }
        int list = isCut ? openList() : -1;
        if (list >= 0) {
            return out.substring(0, Math.min(list, NAME_CHARS_MAX - 5)) + "(?...";
        }
        int length = out.length();
        while (length > 0 && (out.charAt(length - 1) == ' ' || out.charAt(length - 1) == ';')) {
            length--;
        }
        out.setLength(Math.min(length, isCut ? NAME_CHARS_MAX - 3 : NAME_CHARS_MAX));
        return isCut ? out.append("...").toString() : out.toString();
    }

    /** Start of an unclosed list of values after {@code in}; -1 if there is none. */
    private int openList() {
        if (opened == 0 || open[opened - 1] != LIST) {
            return -1;
        }
        int at = open[opened - 3];
        return endsWith("(?", Math.min(out.length(), at + 2)) ? at : -1;
    }
}
