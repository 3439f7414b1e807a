package io.tachograph.api.processor;

/** One field of a record type: name, unit, and the code that writes its value into the ring. */
final class Field {
    /** The letters are those of {@code RecordTypes} in the agent. */
    enum Kind {
        BOOL('Z', "truth", "%s", true),
        INTEGER('J', "number", "%s", true),
        DOUBLE('D', "real", "%s", true),
        FLOAT('F', "shortReal", "%s", true),
        TEXT('S', "object", "%s", false),
        /**
         * Converted to a string before the record begins, because the object may be mutable and its
         * code may do anything.
         */
        CHARS('S', "object", "%1$s == null ? null : %1$s.toString()", false),
        NAME('E', "object", "%1$s == null ? null : %1$s.name()", false),
        UUID('U', "object", "%s", false),
        INSTANT('T', "object", "%s", false),
        DURATION('N', "object", "%s", false);

        final char letter;
        final String method;
        final String expression;
        final boolean isWord;

        Kind(char letter, String method, String expression, boolean isWord) {
            this.letter = letter;
            this.method = method;
            this.expression = expression;
            this.isWord = isWord;
        }
    }

    final String name;
    final String unit;
    final Kind kind;

    /** Name of a primitive type, or qualified name of another type, for the generated source. */
    final String type;

    Field(String name, String unit, Kind kind, String type) {
        this.name = name;
        this.unit = unit;
        this.kind = kind;
        this.type = type;
    }
}
