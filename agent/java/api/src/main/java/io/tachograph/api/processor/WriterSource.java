package io.tachograph.api.processor;

import java.util.List;

/**
 * Writes the source of one generated class. The generated methods use no reflection and no boxing,
 * and they create an object only to convert a {@code CharSequence}.
 */
final class WriterSource {
    private static final String API = "io.tachograph.api.";

    private final String packageName;
    private final String simpleName;
    private final String origin;
    private final boolean isInterface;
    private final boolean isPublic;
    private final List<Declared> declared;
    private final StringBuilder out = new StringBuilder();

    /**
     * @param origin qualified name of the annotated type
     */
    WriterSource(
            String packageName,
            String simpleName,
            String origin,
            boolean isInterface,
            boolean isPublic,
            List<Declared> declared) {
        this.packageName = packageName;
        this.simpleName = simpleName;
        this.origin = origin;
        this.isInterface = isInterface;
        this.isPublic = isPublic;
        this.declared = declared;
    }

    String className() {
        return packageName.isEmpty() ? simpleName : packageName + "." + simpleName;
    }

    String text() {
        out.setLength(0);
        if (!packageName.isEmpty()) {
            line(0, "package " + packageName + ";\n");
        }
        line(0, "/** Writes the records that {@link " + origin + "} declares. Generated. */");
        line(0, "@" + API + "Generated");
        String access = isPublic ? "public " : "";
        String implemented = isInterface ? " implements " + origin : "";
        line(0, access + "final class " + simpleName + implemented + " {");
        if (isInterface) {
            line(1, "private static final " + simpleName + " ONLY = new " + simpleName + "();\n");
        }
        line(1, "private " + simpleName + "() {}");
        if (isInterface) {
            line(0, "");
            line(1, "/** The writer; it has no state. */");
            line(1, "public static " + simpleName + " get() {");
            line(2, "return ONLY;");
            line(1, "}");
        }
        for (int at = 0; at < declared.size(); at++) {
            entrance(declared.get(at), "Type" + at);
            type(declared.get(at), "Type" + at);
        }
        line(0, "}");
        return out.toString();
    }

    /**
     * Generates the method that the program calls, or the two methods for a Java record. Without an
     * agent, these methods use no other class than {@code Records}.
     */
    private void entrance(Declared record, String holder) {
        String parameters = parameters(record);
        line(0, "");
        line(1, "/** {@code " + record.name + "} */");
        if (isInterface) {
            line(1, "@Override");
            line(1, "public void " + record.method + "(" + parameters + ") {");
            body(record, holder + ".write(" + arguments(record, "a%d") + ")", "");
        } else {
            line(1, "public static void write(" + parameters + ") {");
            body(record, holder + ".write(" + arguments(record, "a%d") + ")", "");
            line(0, "");
            line(1, "/** {@code " + record.name + "}; null writes no record. */");
            line(1, "public static void write(" + origin + " record) {");
            String values = arguments(record, "record.%s()");
            body(record, holder + ".write(" + values + ")", "record != null && ");
        }
    }

    private void body(Declared record, String call, String condition) {
        line(2, "if (" + condition + API + "Records.on()) {");
        line(3, "try {");
        line(4, call + ";");
        line(3, "} catch (Throwable e) {");
        line(4, "// Code that reads a value failed, or stack or memory ran out: the record is");
        line(4, "// dropped and the program continues.");
        line(4, "try {");
        line(5, API + "RecordWriter.failed(" + literal(record.name) + ", e);");
        line(4, "} catch (Throwable again) {");
        line(5, "// There is no stack left to count the record.");
        line(4, "}");
        line(3, "}");
        line(2, "}");
        line(1, "}");
    }

    /** A separate class, which the JVM links only if there is an agent. */
    private void type(Declared record, String holder) {
        StringBuilder kinds = new StringBuilder();
        StringBuilder names = new StringBuilder();
        int words = 0;
        for (Field field : record.fields) {
            kinds.append(field.kind.letter);
            names.append(", ").append(literal(field.name)).append(", ").append(literal(field.unit));
            words += field.kind.isWord ? 1 : 0;
        }
        int objects = record.fields.size() - words;
        line(0, "");
        line(1, "@" + API + "Generated");
        line(1, "private static final class " + holder + " {");
        line(2, "private static final int ID =");
        String first = literal(record.name) + ", " + literal(kinds.toString());
        line(4, API + "RecordWriter.type(" + first + names + ");\n");
        line(2, "static void write(" + parameters(record) + ") {");
        values(record);
        String counts = words + ", " + objects;
        line(3, "Object to = " + API + "RecordWriter.begin(ID, " + counts + ");");
        line(3, "if (to != null) {");
        for (int at = 0; at < record.fields.size(); at++) {
            line(
                    4,
                    API
                            + "RecordWriter."
                            + record.fields.get(at).kind.method
                            + "(to, v"
                            + at
                            + ");");
        }
        line(4, API + "RecordWriter.end(to);");
        line(3, "}");
        line(2, "}");
        line(1, "}");
    }

    /**
     * Generates the code that reads the values before the record begins, because this code may call
     * code of the program.
     */
    private void values(Declared record) {
        for (int at = 0; at < record.fields.size(); at++) {
            Field field = record.fields.get(at);
            String type = field.kind.isWord ? field.type : "Object";
            line(
                    3,
                    type
                            + " v"
                            + at
                            + " = "
                            + String.format(field.kind.expression, "a" + at)
                            + ";");
        }
    }

    private static String parameters(Declared record) {
        StringBuilder list = new StringBuilder();
        for (int at = 0; at < record.fields.size(); at++) {
            String comma = at > 0 ? ", " : "";
            list.append(comma).append(record.fields.get(at).type).append(" a").append(at);
        }
        return list.toString();
    }

    /**
     * @param form text for each argument; {@code %d} becomes the position of the field, {@code %s}
     *     its name
     */
    private static String arguments(Declared record, String form) {
        StringBuilder list = new StringBuilder();
        for (int at = 0; at < record.fields.size(); at++) {
            list.append(at > 0 ? ", " : "");
            list.append(form.replace("%d", "" + at).replace("%s", record.fields.get(at).name));
        }
        return list.toString();
    }

    private static String literal(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c >= ' ' && c < 127) {
                quoted.append(c);
            } else {
                // Control characters are in octal, because the compiler replaces Unicode escapes
                // before it reads literals: an escaped line feed would end the line.
                quoted.append(String.format(c < ' ' ? "\\%03o" : "\\u%04x", (int) c));
            }
        }
        return quoted.append('"').toString();
    }

    private void line(int depth, String text) {
        out.append("    ".repeat(text.isEmpty() ? 0 : depth)).append(text).append('\n');
    }
}
