/**
 * Connects the parts: settings, buffers, sender, samplers, instrumentation. Starts at {@code
 * Agent}.
 */
package io.tachograph.core;
