/**
 * Probes for incoming and outgoing HTTP requests. Each probe selects methods; its advice has the
 * code.
 */
package io.tachograph.probes.http;
