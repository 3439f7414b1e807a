package io.tachograph.testing;

import java.util.Map;

/** One sample as received by the server. */
public record Sample(Map<String, String> labels, long at, Number value) {
    public String name() {
        return labels.get("__name__");
    }
}
