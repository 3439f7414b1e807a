package io.tachograph.api.processor;

/**
 * Converts {@code CartEmptied} to {@code cart_emptied}, and {@code HTTPServer2} to {@code
 * http_server2}.
 */
final class SnakeCase {
    private SnakeCase() {}

    static String of(String name) {
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < name.length(); at++) {
            char c = name.charAt(at);
            if (Character.isUpperCase(c) && at > 0 && isWordBegin(name, at)) {
                out.append('_');
            }
            out.append(Character.toLowerCase(c));
        }
        return out.toString();
    }

    /**
     * True if an upper-case letter begins a word: after a lower-case letter or a digit, or before a
     * lower-case letter and not after {@code _}. {@code HTTPServer} has two words.
     */
    private static boolean isWordBegin(String name, int at) {
        char before = name.charAt(at - 1);
        boolean afterSmall = Character.isLowerCase(before) || Character.isDigit(before);
        boolean beforeSmall = at + 1 < name.length() && Character.isLowerCase(name.charAt(at + 1));
        return afterSmall || beforeSmall && before != '_';
    }
}
