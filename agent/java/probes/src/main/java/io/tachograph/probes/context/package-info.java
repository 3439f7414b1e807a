/**
 * Probes that carry the trace context from one thread to another. Each probe selects methods; its
 * advice has the code.
 */
package io.tachograph.probes.context;
