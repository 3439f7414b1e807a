package io.tachograph.api.processor;

import io.tachograph.api.Record;
import io.tachograph.api.Unit;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.Name;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;

/**
 * Reads the record types of annotated interfaces and Java records, and reports the first error in
 * each interface or Java record.
 */
final class Declarations {
    /** The same limit as in the wire format. */
    static final int RECORD_FIELDS_MAX = 64;

    static final int RECORD_UNIT_BYTES_MAX = 64;
    private static final int NAME_BYTES_MAX = 256;

    /** Names that a query may contain without quotes. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z_:][A-Za-z0-9_:]*");

    /** Members of the JSON object of a record that identify the call in which it was written. */
    private static final Set<String> RESERVED = Set.of("trace_id", "span_id");

    private static final Map<String, Field.Kind> KINDS =
            Map.of(
                    "java.lang.String", Field.Kind.TEXT,
                    "java.lang.CharSequence", Field.Kind.CHARS,
                    "java.util.UUID", Field.Kind.UUID,
                    "java.time.Instant", Field.Kind.INSTANT,
                    "java.time.Duration", Field.Kind.DURATION);

    private static final Map<TypeKind, Field.Kind> PRIMITIVES =
            Map.of(
                    TypeKind.BOOLEAN, Field.Kind.BOOL,
                    TypeKind.BYTE, Field.Kind.INTEGER,
                    TypeKind.SHORT, Field.Kind.INTEGER,
                    TypeKind.INT, Field.Kind.INTEGER,
                    TypeKind.LONG, Field.Kind.INTEGER,
                    TypeKind.FLOAT, Field.Kind.FLOAT,
                    TypeKind.DOUBLE, Field.Kind.DOUBLE);

    private final Elements elements;

    Declarations(Elements elements) {
        this.elements = elements;
    }

    WriterSource source(TypeElement type) throws Refused {
        boolean isInterface = type.getKind() == ElementKind.INTERFACE;
        if (!isInterface && !isRecord(type)) {
            throw new Refused(type, "@Record is for interfaces and Java records");
        }
        if (!type.getTypeParameters().isEmpty()) {
            throw new Refused(type, "a record type has no type parameters");
        }
        boolean isPublic = true;
        for (Element at = type; at instanceof TypeElement; at = at.getEnclosingElement()) {
            if (at.getModifiers().contains(Modifier.PRIVATE)) {
                throw new Refused(
                        type, at.getSimpleName() + " is private: the writer cannot access it");
            }
            isPublic &= at.getModifiers().contains(Modifier.PUBLIC);
        }
        String packageName = elements.getPackageOf(type).getQualifiedName().toString();
        String binary = elements.getBinaryName(type).toString();
        String flat = binary.substring(packageName.isEmpty() ? 0 : packageName.length() + 1);
        List<Declared> declared = isInterface ? methods(type) : List.of(components(type));
        return new WriterSource(
                packageName,
                flat.replace('$', '_') + (isInterface ? "Records" : "Record"),
                type.getQualifiedName().toString(),
                isInterface,
                isPublic,
                declared);
    }

    /** On a method, {@code @Record} only sets the name of the record type. */
    void checkMethod(Element method) throws Refused {
        Element owner = method.getEnclosingElement();
        if (owner.getAnnotation(Record.class) == null || !isDeclaring(method)) {
            throw new Refused(
                    method,
                    "@Record on a method names a record type: it must be an abstract method of an"
                            + " interface with @Record");
        }
    }

    private static boolean isRecord(Element type) {
        return type.getKind().name().equals("RECORD"); // the constant exists in Java 16 and later
    }

    private static boolean isDeclaring(Element method) {
        return method.getModifiers().contains(Modifier.ABSTRACT)
                && method.getEnclosingElement().getKind() == ElementKind.INTERFACE;
    }

    private List<Declared> methods(TypeElement type) throws Refused {
        if (!type.getInterfaces().isEmpty()) {
            throw new Refused(type, "an interface of record types must not extend an interface");
        }
        String given = type.getAnnotation(Record.class).value();
        String prefix = given.isEmpty() ? SnakeCase.of(type.getSimpleName().toString()) : given;
        List<Declared> list = new ArrayList<>();
        Map<String, ExecutableElement> names = new HashMap<>();
        for (ExecutableElement method : ElementFilter.methodsIn(type.getEnclosedElements())) {
            if (isDeclaring(method)) {
                Declared declared = method(method, prefix);
                if (names.put(declared.name, method) != null) {
                    throw new Refused(
                            method,
                            "two record types are named "
                                    + declared.name
                                    + ": rename one with @Record(\"...\")");
                }
                list.add(declared);
            }
        }
        if (list.isEmpty()) {
            throw new Refused(
                    type, "no record type is declared, because there is no abstract method");
        }
        return list;
    }

    private Declared method(ExecutableElement method, String prefix) throws Refused {
        String simple = method.getSimpleName().toString();
        if (method.getReturnType().getKind() != TypeKind.VOID) {
            throw new Refused(method, simple + " returns a value: it must return void");
        }
        if (!method.getTypeParameters().isEmpty()) {
            throw new Refused(method, "a record type has no type parameters");
        }
        Record named = method.getAnnotation(Record.class);
        boolean hasName = named != null && !named.value().isEmpty();
        String name = hasName ? named.value() : prefix + "_" + SnakeCase.of(simple);
        List<Field> fields = new ArrayList<>();
        for (VariableElement parameter : method.getParameters()) {
            fields.add(field("parameter", parameter, parameter.getAnnotation(Unit.class)));
        }
        return new Declared(checked(name, method), simple, checked(fields, method));
    }

    private Declared components(TypeElement type) throws Refused {
        // The components define the order. Annotations and source positions come from the fields.
        Map<Name, VariableElement> named = new HashMap<>();
        for (VariableElement field : ElementFilter.fieldsIn(type.getEnclosedElements())) {
            named.put(field.getSimpleName(), field);
        }
        List<Field> fields = new ArrayList<>();
        for (Element element : type.getEnclosedElements()) {
            if (element.getKind().name().equals("RECORD_COMPONENT")) {
                VariableElement field = named.get(element.getSimpleName());
                fields.add(field("component", field, field.getAnnotation(Unit.class)));
            }
        }
        String given = type.getAnnotation(Record.class).value();
        String name = given.isEmpty() ? SnakeCase.of(type.getSimpleName().toString()) : given;
        return new Declared(checked(name, type), null, checked(fields, type));
    }

    private Field field(String what, Element element, Unit unit) throws Refused {
        String name = element.getSimpleName().toString();
        if (RESERVED.contains(name)) {
            throw new Refused(
                    element, what + " " + name + ": this name is reserved for the ids of the call");
        }
        checkBytes(element, what + " " + name, name, NAME_BYTES_MAX);
        String given = unit == null ? "" : unit.value();
        checkBytes(element, "the unit of " + what + " " + name, given, RECORD_UNIT_BYTES_MAX);
        TypeMirror type = element.asType();
        Field.Kind kind = kind(type);
        if (kind == null) {
            throw new Refused(
                    element,
                    what
                            + " "
                            + name
                            + " is of type "
                            + type
                            + ", which a record cannot hold; it must be boolean, byte, short,"
                            + " int, long, float, double, String, CharSequence, an enum, UUID,"
                            + " Instant or Duration");
        }
        return new Field(name, given, kind, sourceName(type));
    }

    private Field.Kind kind(TypeMirror type) {
        if (type.getKind() != TypeKind.DECLARED) {
            return PRIMITIVES.get(type.getKind());
        }
        TypeElement element = (TypeElement) ((DeclaredType) type).asElement();
        return element.getKind() == ElementKind.ENUM
                ? Field.Kind.NAME
                : KINDS.get(element.getQualifiedName().toString());
    }

    /** The name without type annotations, which would otherwise appear in the source text. */
    private static String sourceName(TypeMirror type) {
        return type.getKind().isPrimitive()
                ? type.getKind().name().toLowerCase(Locale.ROOT)
                : ((TypeElement) ((DeclaredType) type).asElement()).getQualifiedName().toString();
    }

    private static String checked(String name, Element place) throws Refused {
        if (!NAME.matcher(name).matches()) {
            throw new Refused(
                    place,
                    "\"" + name + "\" cannot name a record type: a name has letters, digits, _ and"
                            + " :, and does not begin with a digit; use @Record(\"...\")");
        }
        checkBytes(place, "the name " + name, name, NAME_BYTES_MAX);
        return name;
    }

    private static List<Field> checked(List<Field> fields, Element place) throws Refused {
        Set<String> names = new HashSet<>();
        for (Field field : fields) {
            if (!names.add(field.name)) {
                throw new Refused(place, field.name + " is declared twice");
            }
        }
        if (fields.size() > RECORD_FIELDS_MAX) {
            throw new Refused(
                    place,
                    fields.size()
                            + " fields are declared, at most "
                            + RECORD_FIELDS_MAX
                            + " are allowed");
        }
        return fields;
    }

    private static void checkBytes(Element place, String what, String text, int max)
            throws Refused {
        int bytes = text.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > max) {
            throw new Refused(
                    place, what + " has " + bytes + " bytes, at most " + max + " are allowed");
        }
    }
}
