/**
 * Samples of the JVM, of the agent itself and of aggregated calls at an interval, as series with
 * the naming conventions of Prometheus.
 */
package io.tachograph.core.sample;
