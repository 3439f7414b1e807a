package io.tachograph.core.sample;

import io.tachograph.core.wire.SampleBatch;

/**
 * A source of samples that is read at an interval. A new sampler is one class and one line in
 * {@link SamplerThread}.
 */
interface Sampler {
    /** Adds its samples; called on the agent's own thread, may take a few milliseconds. */
    void sample(SampleBatch into);
}
