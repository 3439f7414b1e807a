package io.tachograph.core.instrument;

/**
 * One pattern of {@code include} or {@code exclude}.
 *
 * <pre>
 *   com.shop..*                every class in com.shop and below it
 *   com.shop.*                 every class in com.shop
 *   com.shop.Board             one class
 *   com.shop.Board.post        one method, all overloads; com.shop.Board.&lt;init&gt; its constructors
 *   com.shop..*Service.find*   methods whose name begins with find, in classes whose name ends in Service
 *   &#64;com.shop.Watched         classes, and methods, with an annotation
 * </pre>
 *
 * A star stands for any characters but a dot, two dots for any number of packages; {@code *} alone
 * is everything. A pattern is held against the full name of the class, and, unless two dots are its
 * last ones, its part before the last dot against the class and the rest against the method: it
 * counts where either fits.
 */
final class Pattern {
    /** Stands for all classes, as {@code ..*} does. */
    private static final String EVERYTHING = "*";

    private final String text;
    private final boolean annotation;

    /** The part before the last dot and the part behind it, where that can name methods. */
    private final Pattern owner;

    private final Pattern method;

    private Pattern(String text, boolean annotation, boolean divided) {
        this.text = text;
        this.annotation = annotation;
        int dot = text.lastIndexOf('.');
        // Where that dot is half of a "..", what is behind it names classes.
        boolean names = divided && !annotation && dot > 0 && text.charAt(dot - 1) != '.';
        this.owner = names ? new Pattern(text.substring(0, dot), false, false) : null;
        this.method = names ? new Pattern(text.substring(dot + 1), false, false) : null;
    }

    /**
     * @throws IllegalArgumentException with a sentence, if it is no pattern
     */
    static Pattern parse(String text) {
        boolean annotation = text.startsWith("@");
        String name = annotation ? text.substring(1) : text;
        for (int at = 0; at < name.length(); at++) {
            char c = name.charAt(at);
            if (!Character.isJavaIdentifierPart(
                            Character.isHighSurrogate(c) ? name.codePointAt(at) : c)
                    && !Character.isLowSurrogate(c)
                    && ".*<>-".indexOf(c) < 0) {
                throw new IllegalArgumentException(
                        "'" + c + "' cannot be part of a pattern: " + text);
            }
        }
        if (name.isEmpty()
                || name.contains("...")
                || name.endsWith(".")
                || name.startsWith(".") && !name.startsWith("..")) {
            throw new IllegalArgumentException("a dot is out of place in the pattern: " + text);
        }
        return new Pattern(name.equals(EVERYTHING) ? ".." + name : name, annotation, true);
    }

    boolean isAnnotation() {
        return annotation;
    }

    /** Does the whole pattern fit this name of a class, or of an annotation? */
    boolean fits(String name) {
        return fits(0, name, 0);
    }

    /** Does it fit the method of that class, where it does not fit the class? */
    boolean fits(String className, String methodName) {
        return owner != null && owner.fits(className) && method.fits(methodName);
    }

    /** Could it fit some method of that class? */
    boolean mayFitMethodsOf(String className) {
        return owner != null && owner.fits(className);
    }

    /** It fits names that have nothing in common. */
    boolean isEverything() {
        return !annotation && fitsAny("a.B", "c") && fitsAny("de.fg.hi.Jk$Lm", "<init>");
    }

    private boolean fitsAny(String className, String methodName) {
        return fits(className) || fits(className, methodName);
    }

    private boolean fits(int at, String name, int from) {
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '.' && at + 1 < text.length() && text.charAt(at + 1) == '.') {
                return fitsPackages(at + 2, name, from, at == 0);
            }
            if (c == '*') {
                int rest = at + 1;
                for (int end = from; end <= name.length(); end++) {
                    if (fits(rest, name, end)) {
                        return true;
                    }
                    if (end < name.length() && name.charAt(end) == '.') {
                        return false;
                    }
                }
                return false;
            }
            if (from >= name.length() || name.charAt(from) != c) {
                return false;
            }
            at++;
            from++;
        }
        return from == name.length();
    }

    /**
     * Two dots: one dot, or a dot, packages and a dot; at the beginning of a pattern also nothing
     * at all.
     */
    private boolean fitsPackages(int rest, String name, int from, boolean first) {
        if (first && fits(rest, name, from)) {
            return true;
        }
        for (int dot = first ? name.indexOf('.') : from;
                dot >= 0 && dot < name.length();
                dot = name.indexOf('.', dot + 1)) {
            if (name.charAt(dot) != '.') {
                return false;
            }
            if (fits(rest, name, dot + 1)) {
                return true;
            }
        }
        return false;
    }
}
