package io.tachograph.api.processor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Only invalid declarations have messages. */
class ProcessorTest {
    private static final String IMPORTS =
            "import io.tachograph.api.Record; import io.tachograph.api.Unit;";

    private static Stream<Arguments> wrong() {
        String holds =
                ", which a record cannot hold; it must be boolean, byte, short, int, long, float,"
                        + " double, String, CharSequence, an enum, UUID, Instant or Duration";
        return Stream.of(
                Arguments.of(
                        "@Record class T {}", "1: @Record is for interfaces and Java records"),
                Arguments.of(
                        "@Record enum T { A }", "1: @Record is for interfaces and Java records"),
                Arguments.of(
                        "@Record interface T<X> { void a(); }",
                        "1: a record type has no type parameters"),
                Arguments.of(
                        "@Record interface T { <X> void a(); }",
                        "1: a record type has no type parameters"),
                Arguments.of(
                        "@Record interface T { }",
                        "1: no record type is declared, because there is no abstract method"),
                Arguments.of(
                        "@Record interface T { default void a() {} }",
                        "1: no record type is declared, because there is no abstract method"),
                Arguments.of(
                        "@Record interface T extends Runnable { void a(); }",
                        "1: an interface of record types must not extend an interface"),
                Arguments.of(
                        "@Record interface T { \n int a(); }",
                        "2: a returns a value: it must return void"),
                Arguments.of(
                        "@Record interface T { void a(int x, \n Integer y); }",
                        "2: parameter y is of type java.lang.Integer" + holds),
                Arguments.of(
                        "@Record interface T { void a(char c); }",
                        "1: parameter c is of type char" + holds),
                Arguments.of(
                        "@Record interface T { void a(String... s); }",
                        "1: parameter s is of type java.lang.String[]" + holds),
                Arguments.of(
                        "@Record record T(int x, \n Object y) {}",
                        "2: component y is of type java.lang.Object" + holds),
                Arguments.of(
                        "@Record interface T { void a(int trace_id); }",
                        "1: parameter trace_id: this name is reserved for the ids of the call"),
                Arguments.of(
                        "@Record interface T { void a(); \n void a(int x); }",
                        "2: two record types are named t_a: rename one with @Record(\"...\")"),
                Arguments.of(
                        "@Record interface T { void a(); @Record(\"t_a\") void b(); }",
                        "1: two record types are named t_a: rename one with @Record(\"...\")"),
                Arguments.of(
                        "@Record(\"a b\") interface T { void a(); }",
                        "1: \"a b_a\" cannot name a record type: a name has letters, digits, _ and"
                                + " :, and does not begin with a digit; use @Record(\"...\")"),
                Arguments.of(
                        "class T { @Record private interface I { void a(); } }",
                        "1: I is private: the writer cannot access it"),
                Arguments.of(
                        "interface T { @Record void a(); }",
                        "1: @Record on a method names a record type: it must be an abstract method"
                                + " of an interface with @Record"),
                Arguments.of(
                        "@Record interface T { void a(@Unit(\"" + "u".repeat(65) + "\") int x); }",
                        "1: the unit of parameter x has 65 bytes, at most 64 are allowed"),
                Arguments.of(
                        "@Record interface T { void " + "a".repeat(255) + "(); }",
                        "1: the name t_" + "a".repeat(255) + " has 257 bytes, at most 256 are"
                                + " allowed"),
                Arguments.of(
                        "@Record interface T { void a(" + parameters(65) + "); }",
                        "1: 65 fields are declared, at most 64 are allowed"));
    }

    private static String parameters(int count) {
        return IntStream.range(0, count)
                .mapToObj(at -> "int x" + at)
                .collect(Collectors.joining(", "));
    }

    @ParameterizedTest
    @MethodSource("wrong")
    void errorsAreReportedAtTheirPlace(String source, String expected) {
        List<String> said = Compiled.of("T", IMPORTS + source).said;
        assertEquals(List.of(expected), said);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "@Record interface T { void a(); }",
                "@Record public interface T { void a(int a0, int to, int e, int v0, int ID); }",
                "class T { @Record interface Inner { void a(E e); } enum E { A, B {} } }",
                "@Record record T() {}",
                "@Record record T(@Unit(\"EUR\") double total, String größe) {}",
                "@Record interface T { void a(@Unit(\"\\\"\\\\\\n\\u00b0\") int x); static void b() {} }",
                "@Record interface T { @Record(\"b:c\") void a(java.util.UUID i, CharSequence c); }"
            })
    void validDeclarationsHaveNoMessages(String source) {
        assertEquals(List.of(), Compiled.of("T", IMPORTS + source).said);
    }

    /** The {@link #wrong} cases include a declaration past each bound. */
    @ParameterizedTest
    @MethodSource("atTheBounds")
    void theBoundsThemselvesAreAllowed(String source) {
        assertEquals(List.of(), Compiled.of("T", IMPORTS + source).said);
    }

    private static Stream<String> atTheBounds() {
        return Stream.of(
                "@Record interface T { void a(" + parameters(64) + "); }",
                "@Record interface T { void " + "a".repeat(254) + "(); }",
                "@Record interface T { void a(@Unit(\"" + "u".repeat(64) + "\") int x); }",
                "@Record interface T { void a(@Unit(\"" + "°".repeat(32) + "\") int x); }");
    }

    @ParameterizedTest
    @CsvSource({
        "placed, placed",
        "CartEmptied, cart_emptied",
        "HTTPServer, http_server",
        "Http2Server, http2_server",
        "a_B, a_b",
        "X, x"
    })
    void namesAreInSnakeCase(String name, String expected) {
        assertEquals(expected, SnakeCase.of(name));
    }
}
