/**
 * Probes that carry the trace context from one thread to another. Each probe class selects methods;
 * its advice classes contain the inlined code.
 */
package io.tachograph.probes.context;
