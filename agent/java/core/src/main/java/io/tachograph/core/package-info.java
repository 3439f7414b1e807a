/**
 * Connects the parts of the agent: settings, buffers, sender, samplers, instrumentation. The entry
 * point is {@code Agent}.
 */
package io.tachograph.core;
