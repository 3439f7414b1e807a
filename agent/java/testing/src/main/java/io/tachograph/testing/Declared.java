package io.tachograph.testing;

import java.util.Map;

/**
 * A record of a declared type.
 *
 * @param at ns since the epoch
 * @param trace null outside of calls; then the span is null too
 * @param values by field name, in order of the fields; null is a value
 */
public record Declared(
        RecordType type,
        Map<String, String> labels,
        long at,
        String trace,
        String span,
        Map<String, Object> values) {}
