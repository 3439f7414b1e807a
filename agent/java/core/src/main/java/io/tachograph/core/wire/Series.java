package io.tachograph.core.wire;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The labels of a series of samples. Created once by a sampler and reused: the sender stores its
 * wire id here.
 */
public final class Series {
    private final Map<String, String> labels;

    /** Id on the wire, 0 before the first use. Accessed by the sender only. */
    int id;

    /**
     * @param labels without {@code __name__}
     */
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
