/**
 * Puts the parts together: settings, buffers, sender, samplers, instrumentation. Starts at {@code
 * Agent}.
 */
package io.tachograph.core;
