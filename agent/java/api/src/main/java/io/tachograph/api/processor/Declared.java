package io.tachograph.api.processor;

import java.util.List;

/** A record type. */
final class Declared {
    final String name;

    /** Name of the method of an interface; null for a Java record. */
    final String method;

    final List<Field> fields;

    Declared(String name, String method, List<Field> fields) {
        this.name = name;
        this.method = method;
        this.fields = fields;
    }
}
