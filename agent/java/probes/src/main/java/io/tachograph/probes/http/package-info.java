/**
 * Probes for incoming and outgoing HTTP requests. Each probe class selects methods; its advice
 * classes contain the inlined code.
 */
package io.tachograph.probes.http;
