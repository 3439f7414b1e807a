package io.tachograph.core.wire;

import java.util.ArrayList;
import java.util.List;

/** Samples of one moment. One thread fills the batch and passes it to the sender. */
public final class SampleBatch {
    private final long at;
    private final List<Series> series = new ArrayList<>();
    private final List<Number> values = new ArrayList<>();

    /**
     * @param at ns since the Unix epoch
     */
    public SampleBatch(long at) {
        this.at = at;
    }

    public SampleBatch add(Series of, double value) {
        series.add(of);
        values.add(value);
        return this;
    }

    /** Sent as i64. */
    public SampleBatch add(Series of, long value) {
        series.add(of);
        values.add(value);
        return this;
    }

    public long at() {
        return at;
    }

    public int size() {
        return series.size();
    }

    /** Defines the series of a sample. @return false if the dictionary has no space for it */
    public boolean isDefined(int index, Dictionary dictionary) {
        return dictionary.series(series.get(index)) != 0;
    }

    /** Writes sample {@code index} as the content of a record with tag 1. */
    public void write(int index, long base, Dictionary dictionary, Bytes out) {
        Number value = values.get(index);
        boolean whole = value instanceof Long;
        out.u8(whole ? Wire.VALUE_I64 : Wire.VALUE_F64);
        out.varint(dictionary.series(series.get(index))).varint(1).zigzag(at - base);
        if (whole) {
            out.zigzag(value.longValue());
        } else {
            out.u64(Double.doubleToRawLongBits(value.doubleValue()));
        }
    }
}
