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
        return matches(text, name);
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

    /**
     * Asked for every class that is loaded, whatever somebody has written as a pattern: so nothing
     * is tried again but what stands behind the last star, and behind the last two dots. A star
     * before a dot that has been found, or two dots before a group that has, can be left as they
     * are: what follows has the same choices wherever they end.
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
                // One dot, or a dot, packages and a dot; at the beginning also nothing at all.
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
