package io.tachograph.core.config;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The subset of TOML 1.0 that the agent reads: lines {@code key = value} with a basic string, a
 * literal string, a number, a boolean or an array of strings (which may span several lines), and
 * comments. It reads no tables, dates, inline tables, dotted keys or multi-line strings. An invalid
 * line is reported with its number; the other lines apply. Tests with {@code testdata/settings}
 * compare the values with those that {@code tacho attach} reads with a TOML library.
 *
 * <p>The agent uses no TOML library. The smallest one found, jtoml 1.3, adds 168 KB to the jar of
 * 4.9 MB (this class: 6 KB). It needs 120 ms to parse the file at the start of every program (this
 * class: 4 ms). It loses all settings when one line is broken. The agent does not use {@link
 * java.util.Properties} either, because {@code tacho attach} could not read such a file as TOML.
 */
final class ConfigFile {
    private final String text;
    private final Map<String, String> values = new LinkedHashMap<>();
    private final List<String> faults = new ArrayList<>();
    private final Set<String> arrays = new HashSet<>();
    private final StringBuilder skipped = new StringBuilder();
    private int at;
    private int line = 1;

    private ConfigFile(String text) {
        this.text = text;
    }

    static ConfigFile parse(String text) {
        ConfigFile file = new ConfigFile(text.startsWith("\ufeff") ? text.substring(1) : text);
        file.run();
        return file;
    }

    /** Values as text, by key; the elements of an array are joined by commas. */
    Map<String, String> values() {
        return values;
    }

    /** One message for each invalid line. */
    List<String> faults() {
        return faults;
    }

    /** Keys to which a line gives an array, valid or not. */
    Set<String> arrays() {
        return arrays;
    }

    String skipped() {
        return skipped.toString();
    }

    private void run() {
        while (at < text.length()) {
            skipBlank(true);
            if (at >= text.length()) {
                return;
            }
            int began = line;
            int from = at;
            String key = bareKey();
            try {
                if (key.isEmpty()) {
                    throw new Fault(
                            peek() == '[' ? "tables are not supported" : "a key was expected");
                }
                skipBlank(false);
                if (peek() != '=') {
                    throw new Fault("= was expected after the key");
                }
                at++;
                skipBlank(false);
                if (peek() == '[') {
                    arrays.add(key);
                }
                String value = peek() == '[' ? array() : scalar();
                skipBlank(false);
                if (at < text.length() && peek() != '\n') {
                    throw new Fault("nothing more was expected after the value");
                }
                if (values.putIfAbsent(key, value) != null) {
                    throw new Fault("the key is given twice, the first value is used");
                }
            } catch (Fault fault) {
                faults.add(
                        "line "
                                + began
                                + (key.isEmpty() ? "" : ", " + key)
                                + ": "
                                + fault.getMessage());
                skipLine();
                skipped.append(text, from, at).append('\n');
            }
        }
    }

    private String bareKey() {
        int from = at;
        while (at < text.length()
                && (Character.isLetterOrDigit(peek()) || peek() == '_' || peek() == '-')) {
            at++;
        }
        return text.substring(from, at);
    }

    private String scalar() throws Fault {
        if (peek() == '"' || peek() == '\'') {
            return string();
        }
        int from = at;
        while (at < text.length() && ",]# \t\r\n".indexOf(peek()) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        if (!word.matches("true|false|[+-]?[0-9][0-9_]*(\\.[0-9]+)?")) {
            // The word may be a token, which must not be logged.
            throw new Fault(word.isEmpty() ? "a value was expected" : "text must be in quotes");
        }
        return word.replace("_", "");
    }

    private String string() throws Fault {
        char quote = peek();
        StringBuilder value = new StringBuilder();
        at++;
        while (peek() != quote) {
            if (at >= text.length() || peek() == '\n') {
                throw new Fault("the string has no closing quote");
            }
            char c = peek();
            at++;
            value.append(c == '\\' && quote == '"' ? escape() : String.valueOf(c));
        }
        at++;
        return value.toString();
    }

    private String escape() throws Fault {
        char c = peek();
        at++;
        switch (c) {
            case 'n':
                return "\n";
            case 't':
                return "\t";
            case 'r':
                return "\r";
            case '"':
            case '\\':
                return String.valueOf(c);
            case 'u':
            case 'U':
                int digits = c == 'u' ? 4 : 8;
                try {
                    int code = Integer.parseInt(text.substring(at, at + digits), 16);
                    at += digits;
                    return new String(Character.toChars(code));
                } catch (RuntimeException e) {
                    throw new Fault("\\" + c + " needs " + digits + " hexadecimal digits");
                }
            default:
                throw new Fault("unknown escape \\" + c);
        }
    }

    private String array() throws Fault {
        List<String> elements = new ArrayList<>();
        at++;
        while (true) {
            skipBlank(true);
            if (at >= text.length()) {
                throw new Fault("the array has no closing ]");
            }
            if (peek() == ']') {
                at++;
                return String.join(",", elements);
            }
            elements.add(scalar());
            skipBlank(true);
            if (peek() == ',') {
                at++;
            } else if (peek() != ']') {
                throw new Fault(", or ] was expected in the array");
            }
        }
    }

    /** @param lines true to skip line ends too */
    private void skipBlank(boolean lines) {
        while (at < text.length()) {
            char c = peek();
            if (c == '#') {
                while (at < text.length() && peek() != '\n') {
                    at++;
                }
            } else if (c == '\n' && lines) {
                line++;
                at++;
            } else if (c == ' ' || c == '\t' || c == '\r') {
                at++;
            } else {
                return;
            }
        }
    }

    private void skipLine() {
        while (at < text.length() && peek() != '\n') {
            at++;
        }
    }

    /** 0 at the end. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : 0;
    }

    private static final class Fault extends Exception {
        Fault(String message) {
            super(message, null, false, false);
        }
    }
}
