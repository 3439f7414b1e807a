package io.tachograph.core.instrument;

import io.tachograph.core.log.Messages;

/**
 * One pattern of a rule or of the settings {@code include}, {@code aggregate} and {@code exclude}.
 *
 * <pre>
 *   com.shop..*                every class in com.shop and below it
 *   com.shop.*                 every class in com.shop
 *   com.shop.Board             one class
 *   com.shop.Board.post        one method, all overloads; com.shop.Board.&lt;init&gt; its constructors
 *   com.shop..*Service.find*   methods whose name begins with find, in classes whose name ends in Service
 *   &#64;com.shop.Watched         methods with this annotation, and all methods of classes with it
 * </pre>
 *
 * A star matches any characters except a dot. Two dots match any number of packages. {@code *}
 * alone matches everything. A pattern selects all methods of a class if it matches the full name of
 * the class. A pattern is also divided at its last dot, if that dot is not part of {@code ..}: it
 * selects a method if the first part matches the class and the second part matches the method.
 */
final class Pattern {
    /** Matches all classes, as {@code ..*} does. */
    private static final String EVERYTHING = "*";

    private final String text;
    private final boolean annotation;

    /** The parts before and after the last dot. Both are null if the pattern is not divided. */
    private final Pattern owner;

    private final Pattern method;

    private Pattern(String text, boolean annotation, boolean divided) {
        this.text = text;
        this.annotation = annotation;
        int dot = text.lastIndexOf('.');
        // If the last dot is half of a "..", the part after it names classes.
        boolean names = divided && !annotation && dot > 0 && text.charAt(dot - 1) != '.';
        this.owner = names ? new Pattern(text.substring(0, dot), false, false) : null;
        this.method = names ? new Pattern(text.substring(dot + 1), false, false) : null;
    }

    /**
     * @throws IllegalArgumentException with a message for the user, if the text is not a pattern
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
                throw new IllegalArgumentException(Messages.patternCharacter(c, text));
            }
        }
        if (name.isEmpty()
                || name.contains("...")
                || name.endsWith(".")
                || name.startsWith(".") && !name.startsWith("..")) {
            throw new IllegalArgumentException(Messages.patternDot(text));
        }
        return new Pattern(name.equals(EVERYTHING) ? ".." + name : name, annotation, true);
    }

    boolean isAnnotation() {
        return annotation;
    }

    /** @param name of a class or an annotation */
    boolean fits(String name) {
        return matches(text, name);
    }

    boolean fits(String className, String methodName) {
        return owner != null && owner.fits(className) && method.fits(methodName);
    }

    boolean mayFitMethodsOf(String className) {
        return owner != null && owner.fits(className);
    }

    /** True if the pattern matches a sample method in each of two unrelated classes. */
    boolean isEverything() {
        return !annotation && fitsAny("a.B", "c") && fitsAny("de.fg.hi.Jk$Lm", "<init>");
    }

    private boolean fitsAny(String className, String methodName) {
        return fits(className) || fits(className, methodName);
    }

    /**
     * Called for most loaded classes, with any pattern that a user may write. Backtracking is
     * therefore limited to the last star and the last {@code ..} before the current position. An
     * earlier star needs no second try if a dot was matched after it: a star matches no dot, so
     * every match of the star leads to the same dot and the same rest of the name. An earlier
     * {@code ..} needs no second try either.
     */
    private static boolean matches(String text, String name) {
        int at = 0;
        int from = 0;
        int star = -1;
        int starFrom = 0;
        int dots = -1;
        int dotsFrom = 0;
        while (at < text.length() || from < name.length()) {
            char c = at < text.length() ? text.charAt(at) : 0;
            boolean same = at < text.length() && from < name.length() && name.charAt(from) == c;
            boolean packages = c == '.' && text.startsWith("..", at);
            if (packages && (at == 0 || same)) {
                // Two dots match a single dot, or packages with a dot before and after them. At
                // the beginning they match nothing, or packages with a dot after them.
                from = at == 0 ? from : from + 1;
                at += 2;
                star = -1;
                dots = at;
                dotsFrom = from;
            } else if (c == '*') {
                star = ++at;
                starFrom = from;
            } else if (same && !packages) {
                star = c == '.' ? -1 : star;
                at++;
                from++;
            } else if (star >= 0 && starFrom < name.length() && name.charAt(starFrom) != '.') {
                at = star;
                from = ++starFrom;
            } else {
                int dot = dots < 0 ? -1 : name.indexOf('.', dotsFrom);
                if (dot < 0) {
                    return false;
                }
                at = dots;
                from = dot + 1;
                dotsFrom = from;
                star = -1;
            }
        }
        return true;
    }
}
