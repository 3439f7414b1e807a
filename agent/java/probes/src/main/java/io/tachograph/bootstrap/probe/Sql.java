package io.tachograph.bootstrap.probe;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A statement's text in, its shape out: literals become {@code ?}, white space one blank, comments
 * nothing, and lists of values one value, so that statements that differ only in data are one
 * operation and no data leaves the process. The same rules as {@code sql.js} and {@code sql.py};
 * the cases in {@code testdata/sql} hold all three to them.
 *
 * <p>What is a literal depends on the dialect: {@code "a"} is a name in PostgreSQL and a string in
 * MySQL, where a backslash also escapes a quote. Where two readings of a text are possible and
 * differ in what is a literal, the shape ends there with {@code ...}.
 */
final class Sql {
    /** Characters of a name; what is longer is cut. */
    static final int NAME_CHARS_MAX = 1_000;

    /** Characters that are read; a bulk insert may have megabytes. */
    private static final int TEXT_CHARS_MAX = 20_000;

    /** What the second and later rows of a bulk insert become. */
    private static final String ROWS = "), ...";

    /** How a backslash before a quote is read. */
    private enum Backslash {
        PLAIN,
        ESCAPE,
        UNSURE
    }

    private static final String NAME = "[\\p{L}\\p{Nd}_]";
    private static final String NO_NAME = "[^\\p{L}\\p{Nd}_]";
    private static final Pattern PERCENT =
            Pattern.compile("%(?:s(?!" + NAME + ")|\\(" + NAME + "+\\)s)");

    /**
     * One value of a list: a literal, a parameter, or a word that stands for a value; with a sign,
     * a type, a cast.
     */
    private static final Pattern ITEM =
            words(
                    "[-+]? ?(?:(?:date|time|timestamp|interval) )?"
                            + "(?:\\?|null|true|false|default|[:@]"
                            + NAME
                            + "+)"
                            + "(?:::"
                            + NAME
                            + "+(?:\\[\\])?)?");

    /** After these words of SQLite a text in double quotes is the name of a table. */
    private static final Pattern BEFORE_TABLE =
            words("(?:^|" + NO_NAME + ")(?:(?<!distinct )from|join|into|update|table) \\z");

    private static final Pattern BEFORE_ALIAS = words(NO_NAME + "as \\z");
    private static final Pattern BEFORE_COLUMNS =
            words("(?:^|" + NO_NAME + ")into [^ ()]+ ?\\z");
    private static final Pattern BEFORE_PASSWORD = words("(?:^|" + NO_NAME + ")identified by \\z");
    private static final Pattern BEFORE_NAME = Pattern.compile("\\.[\\p{L}_\"`*]");
    private static final Pattern IN = words("(?:^|[^\\p{L}\\p{Nd}])in ?\\z");
    private static final Pattern VALUES = words("(?:^|" + NO_NAME + ")values? ?\\z");
    private static final Pattern AFTER_ROW = Pattern.compile("\\)(?:, \\.\\.\\.)?, \\z");
    private static final Pattern ROW = Pattern.compile("\\([?, ]*\\)");
    private static final Pattern ARRAY = Pattern.compile("\\[\\?(?:, \\?)+\\]");

    private final String text;
    private final SqlDialect dialect;
    private final StringBuilder shape;
    private boolean isWhole;
    private int at;

    /** Where the open brackets are in {@link #shape}. */
    private final Deque<Integer> open = new ArrayDeque<>();

    /** How many brackets are open inside the column list of an insert; 0 outside one. */
    private int columns;

    private Sql(String text, SqlDialect dialect) {
        this.isWhole = text.length() <= TEXT_CHARS_MAX;
        this.text = isWhole ? text : text.substring(0, TEXT_CHARS_MAX);
        this.dialect = dialect;
        this.shape = new StringBuilder(Math.min(this.text.length(), NAME_CHARS_MAX) + 16);
    }

    /**
     * @return never null, at most {@link #NAME_CHARS_MAX} characters
     */
    static String shape(String text, SqlDialect dialect) {
        return text == null ? "" : new Sql(text, dialect).run();
    }

    private static Pattern words(String pattern) {
        return Pattern.compile(pattern, Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE);
    }

    private String run() {
        while (at < text.length() && shape.length() < NAME_CHARS_MAX) {
            step();
        }
        boolean isCut = !isWhole || at < text.length() || shape.length() > NAME_CHARS_MAX;
        int rows = isCut ? shape.lastIndexOf(ROWS) : -1;
        if (rows >= 0) {
            // Cut inside a bulk insert: where exactly depends on the data.
            return shape.substring(0, Math.min(rows + ROWS.length(), NAME_CHARS_MAX));
        }
        int list = isCut ? openList() : -1;
        if (list >= 0) {
            return shape.substring(0, Math.min(list, NAME_CHARS_MAX - 5)) + "(?...";
        }
        int length = shape.length();
        while (length > 0 && (shape.charAt(length - 1) == ' ' || shape.charAt(length - 1) == ';')) {
            length--;
        }
        shape.setLength(Math.min(length, isCut ? NAME_CHARS_MAX - 3 : NAME_CHARS_MAX));
        return isCut ? shape.append("...").toString() : shape.toString();
    }

    /** Where a list of values after {@code in} was left without its end; -1 where none was. */
    private int openList() {
        Integer last = open.peek();
        boolean isList = last != null && ends(IN, last, 4) && shape.indexOf("(?", last) == last;
        return isList ? last : -1;
    }

    private void step() {
        char c = text.charAt(at);
        if (isSpace(c)) {
            at++;
            blank();
        } else if (c == '-' && peek(1) == '-') {
            dashes();
        } else if (c == '/' && peek(1) == '*') {
            blockComment();
        } else if (c == '#') {
            hash();
        } else if (c == '\'') {
            string(backslash());
        } else if (c == '"') {
            doubleQuoted();
        } else if (c == '`') {
            quotedName('`');
        } else if (c == '[') {
            bracket();
        } else if (c == '$') {
            dollar();
        } else if (c >= '0' && c <= '9') {
            number();
        } else if (c == '_' || Character.isLetter(c)) {
            word();
        } else {
            sign(c);
        }
    }

    private boolean is(SqlDialect... dialects) {
        for (SqlDialect one : dialects) {
            if (one == dialect) {
                return true;
            }
        }
        return false;
    }

    /** How a backslash in a plain string is read. */
    private Backslash backslash() {
        if (is(SqlDialect.MYSQL)) {
            return Backslash.ESCAPE;
        }
        return is(SqlDialect.POSTGRESQL, SqlDialect.OTHER) ? Backslash.UNSURE : Backslash.PLAIN;
    }

    private static boolean isSpace(char c) {
        return Character.isWhitespace(c) || Character.isSpaceChar(c) || c == '\ufeff';
    }

    /**
     * @return the character so many after this one; 0 past the end
     */
    private char peek(int offset) {
        return at + offset < text.length() ? text.charAt(at + offset) : '\0';
    }

    /**
     * @param also what belongs to it beside letters and digits
     * @return where the name that begins there ends
     */
    private int endOfName(int from, String also) {
        int to = from;
        while (to < text.length()) {
            int c = text.codePointAt(to);
            if (!Character.isLetter(c) && !Character.isDigit(c) && also.indexOf(c) < 0) {
                break;
            }
            to += Character.charCount(c);
        }
        return to;
    }

    /** Whether the last so many characters of the shape before a position end so. */
    private boolean ends(Pattern pattern, int position, int count) {
        return pattern.matcher(shape.substring(Math.max(0, position - count), position)).find();
    }

    private boolean endsWith(String tail, int position) {
        int from = position - tail.length();
        return from >= 0 && shape.substring(from, position).equals(tail);
    }

    /** The rest may be read in two ways: it is left out. */
    private void cut() {
        at = text.length();
        isWhole = false;
    }

    private void blank() {
        int length = shape.length();
        if (length > 0 && shape.charAt(length - 1) != ' ' && shape.charAt(length - 1) != '(') {
            shape.append(' ');
        }
    }

    private void dropBlank() {
        int length = shape.length();
        if (length > 0 && shape.charAt(length - 1) == ' ') {
            shape.setLength(length - 1);
        }
    }

    private void value() {
        shape.append('?');
    }

    private void number() {
        int from = at;
        while (at < text.length()) {
            char c = text.charAt(at);
            char before = at > from ? text.charAt(at - 1) : '\0';
            boolean isSign = (c == '+' || c == '-') && (before == 'e' || before == 'E');
            int to = isSign ? at + 1 : endOfName(at, "._");
            if (to == at) {
                break;
            }
            at = to;
        }
        value();
    }

    private void sign(char c) {
        if (c == '%') {
            Matcher percent = PERCENT.matcher(text).region(at, text.length());
            if (percent.lookingAt()) {
                at = percent.end();
                value();
                return;
            }
        }
        at++;
        if (c == '?') {
            while (peek(0) >= '0' && peek(0) <= '9') {
                at++;
            }
            value();
        } else if (c == '(') {
            openBracket();
        } else if (c == ')') {
            closeBracket();
        } else if (c == ',') {
            dropBlank();
            endItem();
            shape.append(", ");
        } else {
            shape.append(c);
            if (c == ']') {
                foldArray();
            }
        }
    }

    private void foldArray() {
        int from = shape.lastIndexOf("[");
        if (from >= 0 && ARRAY.matcher(shape.substring(from)).matches()) {
            shape.setLength(from);
            shape.append("[?]");
        }
    }

    private void openBracket() {
        if (columns > 0) {
            columns++;
        } else if (ends(BEFORE_COLUMNS, shape.length(), 200)) {
            columns = 1;
        }
        open.push(shape.length());
        shape.append('(');
    }

    private void closeBracket() {
        dropBlank();
        endItem();
        shape.append(')');
        columns = Math.max(0, columns - 1);
        Integer last = open.poll();
        if (last != null) {
            foldRow(last);
        }
    }

    /**
     * A value of a list ends: in a list after {@code in} the first one stands for all; in a row all
     * values look alike.
     */
    private void endItem() {
        Integer last = open.peek();
        if (last == null) {
            return;
        }
        int from = Math.max(last, shape.lastIndexOf(", ") + 1) + 1;
        if (from > shape.length() || !ITEM.matcher(shape.substring(from)).matches()) {
            return;
        }
        boolean isFirst = from == last + 1;
        if (ends(IN, last, 4) && (isFirst || shape.substring(last, from).equals("(?, "))) {
            shape.setLength(last);
            shape.append("(?");
        } else if (ends(VALUES, last, 8) || ends(AFTER_ROW, last, 8) || endsWith("(", last)) {
            shape.setLength(from);
            value();
        }
    }

    /** {@code (?, ?), (?, ?)} of a bulk insert becomes {@code (?, ?), ...}. */
    private void foldRow(int from) {
        String row = shape.substring(from);
        boolean isOfValues = ROW.matcher(row).matches();
        int before = Math.max(0, from - row.length() - 2);
        if (isOfValues && endsWith("..., ", from) || endsWith(row + ", ..., ", from)) {
            shape.setLength(from - 2);
        } else if ((isOfValues || ends(VALUES, before, 8)) && endsWith(row + ", ", from)) {
            shape.setLength(from);
            shape.append("...");
        }
    }

    /** {@code -- ...}: in MySQL only before white space, else two signs. */
    private void dashes() {
        boolean isComment = at + 2 >= text.length() || isSpace(text.charAt(at + 2));
        if (isComment || !is(SqlDialect.MYSQL, SqlDialect.OTHER)) {
            lineComment();
        } else if (is(SqlDialect.MYSQL)) {
            at += 2;
            shape.append("--");
        } else {
            commentOrSign("--");
        }
    }

    /** A comment in MySQL, an operator or a part of names elsewhere. */
    private void hash() {
        if (is(SqlDialect.MYSQL)) {
            lineComment();
        } else if (is(SqlDialect.OTHER)) {
            commentOrSign("#");
        } else {
            at++;
            shape.append('#');
        }
    }

    private void commentOrSign(String sign) {
        if (hasQuote(text.substring(at, endOfLine()))) {
            cut();
        } else {
            at += sign.length();
            shape.append(sign);
        }
    }

    /** Whether it holds what hides quotes, or is one. */
    private static boolean hasQuote(String part) {
        return hasPlainQuote(part) || part.contains("/*");
    }

    private static boolean hasPlainQuote(String part) {
        return part.indexOf('\'') >= 0 || part.indexOf('"') >= 0 || part.indexOf('`') >= 0;
    }

    private int endOfLine() {
        int end = text.indexOf('\n', at);
        return end < 0 ? text.length() : end;
    }

    private void lineComment() {
        at = Math.min(endOfLine() + 1, text.length());
        blank();
    }

    /**
     * They nest in PostgreSQL and SQL Server; what MySQL executes of a comment may hold texts with
     * the sign of its end.
     */
    private void blockComment() {
        int depth = 0;
        int to = at;
        do {
            int close = text.indexOf("*/", to + 2);
            int inner = text.indexOf("/*", to + 2);
            if (close < 0) {
                to = text.length();
                break;
            }
            boolean isInner = inner >= 0 && inner < close;
            if (isInner && is(SqlDialect.STANDARD, SqlDialect.OTHER)) {
                cut();
                return;
            }
            isInner &= is(SqlDialect.POSTGRESQL, SqlDialect.SQLSERVER);
            depth += isInner ? 1 : -1;
            to = isInner ? inner : close;
        } while (depth >= 0);
        boolean isCode =
                is(SqlDialect.MYSQL, SqlDialect.OTHER)
                        && (text.startsWith("/*!", at) || text.startsWith("/*M!", at));
        if (isCode && hasPlainQuote(text.substring(at, to))) {
            cut();
            return;
        }
        at = Math.min(to + 2, text.length());
        blank();
    }

    /**
     * @param quote doubled, it is part of the text
     * @return whether it is sure where it ends; if so {@link #at} is there
     */
    private boolean pass(char quote, Backslash backslash) {
        int backslashes = 0;
        for (at++; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == quote) {
                boolean isOdd = backslashes % 2 == 1;
                if (isOdd && backslash == Backslash.UNSURE) {
                    return false;
                }
                if (!isOdd || backslash == Backslash.PLAIN) {
                    if (peek(1) != quote) {
                        break;
                    }
                    at++;
                }
            }
            backslashes = c == '\\' ? backslashes + 1 : 0;
        }
        at = Math.min(at + 1, text.length());
        return true;
    }

    private void string(Backslash backslash) {
        boolean isSure = pass('\'', backslash);
        value();
        if (!isSure) {
            cut();
        }
    }

    /**
     * A name, or in MySQL, SQLite and where the dialect is not known a string, unless nothing but a
     * name can be here.
     */
    private void doubleQuoted() {
        int from = at;
        if (!is(SqlDialect.MYSQL, SqlDialect.SQLITE, SqlDialect.OTHER)) {
            pass('"', Backslash.PLAIN);
            name(text.substring(from, at));
            return;
        }
        boolean isSure = pass('"', backslash());
        if (isSure && isName()) {
            name(text.substring(from, at));
            return;
        }
        value();
        if (!isSure) {
            cut();
        }
    }

    /**
     * Whether what ends here can only be a name: it is qualified, or it stands where a table, an
     * alias or a column is named.
     */
    private boolean isName() {
        int end = shape.length();
        return columns == 1
                || endsWith(".", end)
                || BEFORE_NAME.matcher(text).region(at, text.length()).lookingAt()
                || ends(BEFORE_ALIAS, end, 40)
                || is(SqlDialect.SQLITE) && ends(BEFORE_TABLE, end, 40);
    }

    /** A name as it is; after {@code identified by} it is a password. */
    private void name(String name) {
        if (ends(BEFORE_PASSWORD, shape.length(), 40)) {
            value();
        } else {
            shape.append(name);
        }
    }

    private void quotedName(char quote) {
        int close = text.indexOf(quote, at + 1);
        int to = close < 0 ? text.length() : close + 1;
        shape.append(text, at, to);
        at = to;
    }

    /** {@code [name]} in SQL Server and SQLite, else the index of an array. */
    private void bracket() {
        int close = text.indexOf(']', at);
        if (is(SqlDialect.SQLSERVER, SqlDialect.SQLITE)) {
            quotedName(']');
        } else if (is(SqlDialect.OTHER)
                && hasQuote(text.substring(at, close < 0 ? text.length() : close))) {
            cut();
        } else {
            at++;
            shape.append('[');
        }
    }

    /**
     * {@code $1} is a parameter, {@code $tag$...$tag$} a string; in MySQL and SQL Server it begins
     * a name.
     */
    private void dollar() {
        if (is(SqlDialect.MYSQL, SqlDialect.SQLSERVER)) {
            int to = endOfName(at, "_$#");
            shape.append(text, at, to);
            at = to;
            return;
        }
        int end = endOfName(at + 1, "_");
        if (end < text.length() && text.charAt(end) == '$') {
            end++;
        }
        String tag = text.substring(at, end);
        if (tag.length() > 1 && tag.endsWith("$") && !is(SqlDialect.SQLITE)) {
            int close = text.indexOf(tag, end);
            at = close < 0 ? text.length() : close + tag.length();
        } else {
            at = end;
        }
        value();
    }

    private void word() {
        int from = at;
        at = Math.max(endOfName(at, "_$#"), from + 1);
        String word = text.substring(from, at);
        if (peek(0) != '\'') {
            name(word);
        } else if ((word.equalsIgnoreCase("q") || word.equalsIgnoreCase("nq"))
                && is(SqlDialect.STANDARD, SqlDialect.OTHER)) {
            alternative();
        } else if (word.length() == 1) {
            // E'..', N'..', X'..', B'..'
            boolean isEscaped =
                    word.equalsIgnoreCase("e") && is(SqlDialect.POSTGRESQL, SqlDialect.OTHER);
            string(isEscaped ? Backslash.ESCAPE : backslash());
        } else {
            name(word);
        }
    }

    /**
     * Oracle's {@code q'[...]'}: it ends with the bracket that closes, or the same sign, and a
     * quote.
     */
    private void alternative() {
        String opening = at + 1 < text.length() ? text.substring(at + 1, at + 2) : "";
        int bracket = opening.isEmpty() ? -1 : "[({<".indexOf(opening);
        String closing = bracket < 0 ? opening : "])}>".substring(bracket, bracket + 1);
        int close = text.indexOf(closing + "'", at + 2);
        at = close < 0 ? text.length() : close + 2;
        value();
    }
}
