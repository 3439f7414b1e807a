package io.tachograph.core.sample;

import io.tachograph.core.wire.Series;

import java.util.LinkedHashMap;
import java.util.Map;

/** Creates series with the labels of this process. */
final class SeriesMaker {
    private final Map<String, String> common;

    SeriesMaker(Map<String, String> common) {
        this.common = common;
    }

    Series of(String name) {
        return new Series(name, common);
    }

    Series of(String name, String label, String value) {
        return of(name, Map.of(label, value));
    }

    Series of(String name, Map<String, String> more) {
        Map<String, String> labels = new LinkedHashMap<>(common);
        labels.putAll(more);
        return new Series(name, labels);
    }
}
