/**
 * Connects the parts: settings, buffers, sender, samplers, instrumentation. The entry point is
 * {@code Agent}.
 */
package io.tachograph.core;
