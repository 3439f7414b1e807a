package io.tachograph.core.wire;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The labels of a series of samples or declared records. The object, which also holds the wire id,
 * is reused for all records of the series.
 */
public final class Series {
    private final Map<String, String> labels;

    /**
     * Id on the wire; 0 if the dictionary has not defined the series. Only the sender accesses the
     * id.
     */
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
