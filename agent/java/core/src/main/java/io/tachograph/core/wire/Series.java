package io.tachograph.core.wire;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The labels of a series of samples or declared records. The object is reused for all records of
 * the series, because the sender stores the wire id of the series in it.
 */
public final class Series {
    private final Map<String, String> labels;

    /** Id on the wire; 0 if the dictionary has not defined it. Only the sender accesses it. */
    int id;

    /** @param labels the labels without {@code __name__} */
    public Series(String name, Map<String, String> labels) {
        this.labels = new LinkedHashMap<>(labels);
        this.labels.put("__name__", name);
    }

    Map<String, String> labels() {
        return labels;
    }

    @Override
    public String toString() {
        return labels.toString();
    }
}
