/** Samples of the JVM at an interval, as series with the naming conventions of Prometheus. */
package io.tachograph.core.sample;
