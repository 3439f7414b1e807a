package io.tachograph.testing;

import java.util.Map;

/**
 * A declared record.
 *
 * @param at ns since the epoch
 * @param trace null outside of calls; the span is then null too
 * @param values the values by field name, in the order of the fields; a value may be null
 */
public record Declared(
        RecordType type,
        Map<String, String> labels,
        long at,
        String trace,
        String span,
        Map<String, Object> values) {}
