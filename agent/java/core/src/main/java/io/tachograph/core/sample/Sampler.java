package io.tachograph.core.sample;

import io.tachograph.core.wire.SampleBatch;

/**
 * Something that can be asked for its values now and then. One more sampler is one class and one
 * line in {@link SamplerThread}.
 */
interface Sampler {
    /** Adds its values; called on the agent's own thread, and may take a few milliseconds. */
    void sample(SampleBatch into);
}
