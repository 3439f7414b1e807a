package io.tachograph.core.wire;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The labels of a series of samples. A sampler creates the object once and reuses it, because the
 * sender stores its wire id in it.
 */
public final class Series {
    private final Map<String, String> labels;

    /** Id on the wire; 0 before the first use. Only the sender accesses it. */
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
