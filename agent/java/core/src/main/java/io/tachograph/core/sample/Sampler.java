package io.tachograph.core.sample;

import io.tachograph.core.wire.SampleBatch;

/**
 * A source of samples that is read at an interval. To add a sampler, write one class and one line
 * in {@link SamplerThread} or, if its last values must not be lost, in {@link AgentReport}.
 */
interface Sampler {
    /** Runs on a thread of the agent and may take a few milliseconds. */
    void sample(SampleBatch into);
}
