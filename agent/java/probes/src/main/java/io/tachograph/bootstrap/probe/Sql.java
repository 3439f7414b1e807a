package io.tachograph.bootstrap.probe;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reduces the text of a statement to its shape. Literals become {@code ?}, white space becomes one
 * blank, comments are removed, and lists of values become one value. Statements that differ only in
 * data are therefore one operation, and the data does not leave the process ({@code
 * docs/guide/statements.md} lists the gaps). The rules are those of {@code sql.js} and {@code
 * sql.py}; the cases in {@code testdata/sql} test all three.
 *
 * <p>Literals depend on the dialect: {@code "a"} is a name in PostgreSQL and a string in MySQL,
 * where a backslash also escapes a quote. If a text can be read in two ways that differ in a
 * literal, or if a quote is not closed, the shape ends with {@code ...}.
 *
 * <p>After: {@link SqlShape}.
 */
final class Sql {
    /** Maximum number of characters to read. A bulk insert may have megabytes. */
    private static final int TEXT_CHARS_MAX = 8_000;

    /**
     * Maximum number of tokens to read. A shape rarely has more. After that many tokens, a text
     * usually has only more rows or values of a list, which {@link SqlShape} folds.
     */
    private static final int TOKENS_MAX = 1_000;

    /** The meaning of a backslash before a quote. */
    private enum Backslash {
        PLAIN,
        ESCAPE,
        /**
         * The backslash probably escapes the quote. In the mode NO_BACKSLASH_ESCAPES of MySQL, the
         * literal ends at that quote.
         */
        LIKELY,
        /**
         * The backslash escapes the quote, or is a plain character before the end of the literal.
         */
        UNSURE
    }

    private static final Pattern PERCENT =
            Pattern.compile(
                    "%(?:[sbt](?!NAME)|\\(NAME++\\)[sbt])"
                            .replace("NAME", "[\\w\\x80-\\x{10ffff}]"));

    private final String text;
    private final SqlDialect dialect;
    private final SqlShape shape;
    private boolean isWhole;
    private int at;

    /** The meaning of a backslash in a plain string. */
    private Backslash backslash;

    private Sql(String text, SqlDialect dialect) {
        this.isWhole = text.length() <= TEXT_CHARS_MAX;
        this.text = isWhole ? text : text.substring(0, TEXT_CHARS_MAX);
        this.dialect = dialect;
        this.shape = new SqlShape(this.text.length());
        boolean isUnsure = dialect == SqlDialect.POSTGRESQL || dialect == SqlDialect.OTHER;
        this.backslash =
                dialect == SqlDialect.MYSQL
                        ? Backslash.LIKELY
                        : isUnsure ? Backslash.UNSURE : Backslash.PLAIN;
    }

    /** @return the shape; never null, at most {@link SqlShape#NAME_CHARS_MAX} characters */
    static String shape(String text, SqlDialect dialect) {
        return text == null ? "" : new Sql(text, dialect).run();
    }

    private String run() {
        int length = text.length();
        int tokens = 0;
        while (at < length && shape.length() < SqlShape.NAME_CHARS_MAX && tokens < TOKENS_MAX) {
            step(text.charAt(at));
            tokens++;
        }
        return shape.finish(isWhole && at >= length);
    }

    private void step(char c) {
        if (isBlank(c)) {
            blanks();
        } else if (c <= '\u007f' ? isNameChar(c) && !isDigit(c) : isLetterAt(at)) {
            word();
        } else if (c >= '0' && c <= '9') {
            number();
        } else if (c == '\'') {
            string(backslash);
        } else if (c == '"') {
            doubleQuoted();
        } else if (c == '-' && peek(1) == '-') {
            dashes();
        } else if (c == '/' && peek(1) == '*') {
            blockComment();
        } else if (c == '/' && peek(1) == '/') {
            slashes();
        } else if (c == '#') {
            hash();
        } else if (c == '`') {
            backtick();
        } else if (c == '[') {
            bracket();
        } else if (c == '$') {
            dollar();
        } else {
            sign(c);
        }
    }

    private boolean isLetterAt(int position) {
        return Character.isLetter(text.codePointAt(position));
    }

    private boolean is(SqlDialect one, SqlDialect other) {
        return dialect == one || dialect == other;
    }

    private static boolean isBlank(char c) {
        boolean isAscii = c <= '\u007f';
        return isAscii ? c <= ' ' : c == '\u0085' || c == '\ufeff' || Character.isSpaceChar(c);
    }

    /**
     * @return the character at this offset from the current one; 0 past the end
     */
    private char peek(int offset) {
        return at + offset < text.length() ? text.charAt(at + offset) : '\0';
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    /** True for characters of names, which include all non-ASCII characters. */
    private static boolean isNameChar(char c) {
        boolean isLetter = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > '\u007f';
        return isLetter || c == '_' || isDigit(c);
    }

    /**
     * @param also characters that are allowed in addition to letters, digits and underscores
     * @return the end of the name that begins at {@code from}
     */
    private int endOfName(int from, String also) {
        int to = from;
        while (to < text.length()) {
            int c = text.charAt(to);
            boolean isAscii = c <= '\u007f';
            c = isAscii ? c : text.codePointAt(to);
            boolean isPart =
                    isAscii ? isNameChar((char) c) : Character.isLetter(c) || Character.isDigit(c);
            if (!isPart && also.indexOf(c) < 0) {
                break;
            }
            to += Character.charCount(c);
        }
        return to;
    }

    private int endOfWord() {
        return endOfName(at, is(SqlDialect.STANDARD, SqlDialect.SQLSERVER) ? "$#" : "$");
    }

    /** Cuts the ambiguous rest off. */
    private void cut() {
        at = text.length();
        isWhole = false;
    }

    /** @param isSure true if the end of the literal is known; {@link #at} is then at that end */
    private void literal(boolean isSure) {
        shape.value();
        if (!isSure) {
            cut();
        }
    }

    /** @return true if {@code wanted} was found; {@link #at} is then behind it */
    private boolean passTo(String wanted, int from) {
        int found = text.indexOf(wanted, from);
        if (found >= 0) {
            at = found + wanted.length();
        }
        return found >= 0;
    }

    private void blanks() {
        while (at < text.length() && isBlank(text.charAt(at))) {
            at++;
        }
        shape.blank();
    }

    private void number() {
        int from = at;
        while (at < text.length()) {
            char c = text.charAt(at);
            char before = at > from ? text.charAt(at - 1) : '\0';
            boolean isSign = (c == '+' || c == '-') && (before == 'e' || before == 'E');
            if (!isSign && c != '.' && (c > '\u007f' || !isNameChar(c))) {
                break;
            }
            at++;
        }
        shape.value();
    }

    private void sign(char c) {
        if (c == '%') {
            percent();
        } else if (c == ',') {
            comma();
        } else {
            at++;
            if (c == '?') {
                while (isDigit(peek(0))) {
                    at++;
                }
                shape.value();
            } else if (c == '(') {
                shape.openBracket();
            } else if (c == ')') {
                closing();
            } else {
                shape.sign(c);
            }
        }
    }

    private void percent() {
        Matcher percent = PERCENT.matcher(text).region(at, text.length());
        if (percent.lookingAt()) {
            at = percent.end();
            shape.value();
        } else {
            at++;
            shape.sign('%');
        }
    }

    /**
     * Ends a bracket. After a folded row, the rest of a text that is longer than the limit is
     * ignored, because the limit may cut the text at a place that depends on the number of rows.
     */
    private void closing() {
        if (shape.closeBracket()) {
            at = isWhole ? SqlRows.rows(text, at) : text.length();
        }
    }

    private void comma() {
        int from = at;
        shape.dropBlank();
        if (shape.endItem()) {
            at = SqlRows.items(text, at);
        }
        if (at == from) {
            at++;
            shape.comma();
        }
    }

    /** {@code --} begins a comment; in MySQL only before white space. */
    private void dashes() {
        boolean isComment = peek(2) <= ' ';
        if (isComment || !is(SqlDialect.MYSQL, SqlDialect.OTHER)) {
            lineComment();
        } else if (dialect == SqlDialect.MYSQL) {
            at += 2;
            shape.sign('-');
            shape.sign('-');
        } else {
            cut();
        }
    }

    /**
     * {@code // ...} is a comment only in H2 and HSQLDB. If the dialect is unknown, it may also be
     * an operator.
     */
    private void slashes() {
        boolean isStandard = dialect == SqlDialect.STANDARD;
        if (dialect == SqlDialect.OTHER || isStandard && hasQuote(at + 1, endOfLine())) {
            cut();
        } else if (isStandard) {
            lineComment();
        } else {
            sign('/');
        }
    }

    /**
     * {@code #} begins a comment in MySQL. In other dialects it is an operator or part of a name.
     */
    private void hash() {
        if (dialect == SqlDialect.MYSQL) {
            lineComment();
        } else if (dialect == SqlDialect.OTHER) {
            cut();
        } else {
            sign('#');
        }
    }

    private int endOfLine() {
        int to = at;
        while (to < text.length() && text.charAt(to) != '\n' && text.charAt(to) != '\r') {
            to++;
        }
        return to;
    }

    /**
     * Reads a comment to the end of the line. A lone carriage return ends a line in PostgreSQL. In
     * the other dialects this is not certain.
     */
    private void lineComment() {
        int end = endOfLine();
        boolean isLast = end + 1 >= text.length();
        boolean isSure = isLast || text.charAt(end) == '\n' || text.charAt(end + 1) == '\n';
        if (isSure || dialect == SqlDialect.POSTGRESQL) {
            at = Math.min(end + 1, text.length());
            shape.blank();
        } else {
            cut();
        }
    }

    /**
     * Comments nest in PostgreSQL and SQL Server. An executable comment of MySQL may contain
     * strings with the end sign.
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
        if (isCode && hasQuote(at + 2, to)) {
            cut();
            return;
        }
        at = Math.min(to + 2, text.length());
        shape.blank();
    }

    /**
     * Moves to the end of a literal.
     *
     * @param quote the quote; a doubled quote is part of the literal
     * @return true if the end is certain; {@link #at} is then behind the closing quote
     */
    private boolean pass(char quote, Backslash reading) {
        int from = at + 1;
        for (int to = text.indexOf(quote, from); to >= 0; to = text.indexOf(quote, to + 1)) {
            if (reading != Backslash.PLAIN && isEscaped(from, to)) {
                boolean isLikely = reading == Backslash.LIKELY && backslash == Backslash.LIKELY;
                if (!(isLikely ? isInside(to) : reading != Backslash.UNSURE)) {
                    return false;
                }
            } else if (to + 1 < text.length() && text.charAt(to + 1) == quote) {
                to++;
            } else {
                at = to + 1;
                return true;
            }
        }
        return false;
    }

    /** True if an odd number of backslashes precedes the quote. */
    private boolean isEscaped(int from, int quote) {
        int before = quote;
        while (before > from && text.charAt(before - 1) == '\\') {
            before--;
        }
        return (quote - before) % 2 == 1;
    }

    /**
     * True if the quote does not end the literal, because a word follows. Then all backslashes of
     * the text are escapes.
     */
    private boolean isInside(int quote) {
        boolean isInside = quote + 1 < text.length() && isNameChar(text.charAt(quote + 1));
        if (isInside) {
            backslash = Backslash.ESCAPE;
        }
        return isInside;
    }

    /**
     * True for three quotes in an unknown dialect. They begin a literal of several lines, or a
     * literal whose first character is a quote.
     */
    private boolean isTriple(String quotes) {
        return dialect == SqlDialect.OTHER && text.startsWith(quotes, at);
    }

    private void string(Backslash reading) {
        literal(!isTriple("'''") && pass('\'', reading));
    }

    /**
     * Text in double quotes is a name. In MySQL, SQLite and unknown dialects it is a string, unless
     * only a name is possible at this position.
     */
    private void doubleQuoted() {
        int from = at;
        boolean isString =
                is(SqlDialect.MYSQL, SqlDialect.SQLITE) || dialect == SqlDialect.OTHER;
        boolean isSure = !isTriple("\"\"\"") && pass('"', isString ? backslash : Backslash.PLAIN);
        if (isSure && (!isString || isName())) {
            shape.name(text, from, at);
        } else {
            literal(isSure);
        }
    }

    /**
     * True if the quoted text can only be a name, because it is qualified, or at the position of an
     * alias, of a column or (in SQLite) of a table.
     */
    private boolean isName() {
        char next = peek(1);
        boolean isQuote = next == '"' || next == '`' || next == '*';
        return shape.isBeforeName()
                || peek(0) == '.' && (isQuote || isNameChar(next) && !isDigit(next))
                || dialect == SqlDialect.SQLITE && shape.isBeforeTable();
    }

    /** @param isDoubled true if a doubled closing quote is one quote of the name */
    private void quotedName(char quote, boolean isDoubled) {
        int from = at;
        if (isDoubled ? pass(quote, Backslash.PLAIN) : passTo(String.valueOf(quote), from + 1)) {
            shape.name(text, from, at);
        } else {
            literal(false);
        }
    }

    /**
     * A backtick begins a name in MySQL, SQLite and H2. In other dialects it is an operator or an
     * error.
     */
    private void backtick() {
        if (is(SqlDialect.MYSQL, SqlDialect.SQLITE)) {
            quotedName('`', true);
        } else if (hasQuoteBefore('`')) {
            cut();
        } else if (dialect == SqlDialect.OTHER) {
            quotedName('`', true);
        } else {
            sign('`');
        }
    }

    /** As {@link #hasQuote}, for the text before the next {@code sign} or the end. */
    private boolean hasQuoteBefore(char sign) {
        int close = text.indexOf(sign, at + 1);
        return hasQuote(at + 1, close < 0 ? text.length() : close);
    }

    /**
     * True if the range has a quote, or the start of a comment or of a string such as {@code
     * $$..$$}, in which a quote has no meaning.
     */
    private boolean hasQuote(int from, int to) {
        for (int i = from; i < to; i++) {
            char c = text.charAt(i);
            char next = i + 1 < to ? text.charAt(i + 1) : '\0';
            boolean isComment = c == '/' && next == '*' || c == '-' && next == '-';
            if (isComment || c == '\'' || c == '"' || c == '`' || c == '$') {
                return true;
            }
        }
        return false;
    }

    /**
     * {@code [name]} is a name in SQL Server and SQLite. In other dialects the bracket is an array
     * index.
     */
    private void bracket() {
        if (is(SqlDialect.SQLSERVER, SqlDialect.SQLITE)) {
            quotedName(']', dialect == SqlDialect.SQLSERVER);
        } else if (dialect == SqlDialect.OTHER && hasQuoteBefore(']')) {
            cut();
        } else {
            sign('[');
        }
    }

    /**
     * {@code $1} is a parameter, and {@code $tag$...$tag$} is a string. {@code $1.50} is money in
     * SQL Server. In SQL Server and MySQL, {@code $} also begins a name.
     */
    private void dollar() {
        int from = at;
        boolean isServer = dialect == SqlDialect.SQLSERVER;
        int end = isServer || dialect == SqlDialect.SQLITE ? at : endOfTag();
        if (end > at) {
            // MySQL has such strings only in version 9 and later.
            literal(passTo(text.substring(at, end), end) && dialect != SqlDialect.MYSQL);
        } else if (isServer && (isDigit(peek(1)) || peek(1) == '.')) {
            at++;
            number();
        } else if (isServer || dialect == SqlDialect.MYSQL) {
            at = endOfWord();
            shape.name(text, from, at);
        } else {
            at = endOfName(at + 1, "_");
            shape.value();
        }
    }

    /**
     * Returns the end of {@code $tag$}; {@link #at} if there is none. PostgreSQL treats every
     * non-ASCII character as a letter.
     */
    private int endOfTag() {
        int to = at + 1;
        while (to < text.length() && isNameChar(text.charAt(to))) {
            to++;
        }
        boolean isTag = to < text.length() && text.charAt(to) == '$' && !isDigit(peek(1));
        return isTag ? to + 1 : at;
    }

    private void word() {
        int from = at;
        at = endOfWord();
        if (peek(0) != '\'') {
            shape.name(text, from, at);
        } else if (is(SqlDialect.STANDARD, SqlDialect.OTHER) && isWord(from, "q", "nq")) {
            alternative();
        } else if (at - from == 1) {
            // E'..', N'..', X'..' or B'..'
            boolean isEscape =
                    is(SqlDialect.POSTGRESQL, SqlDialect.OTHER) && isWord(from, "e", "e");
            string(isEscape ? Backslash.ESCAPE : backslash);
        } else {
            shape.name(text, from, at);
        }
    }

    private boolean isWord(int from, String one, String other) {
        String word = text.substring(from, at);
        return word.equalsIgnoreCase(one) || word.equalsIgnoreCase(other);
    }

    /**
     * Oracle's {@code q'[...]'} ends with a quote after the closing bracket, or after the same sign
     * if the opening sign is not a bracket.
     */
    private void alternative() {
        String opening = at + 1 < text.length() ? text.substring(at + 1, at + 2) : "";
        int bracket = opening.isEmpty() ? -1 : "[({<".indexOf(opening);
        String closing = bracket < 0 ? opening : "])}>".substring(bracket, bracket + 1);
        literal(passTo(closing + "'", at + 2));
    }
}
