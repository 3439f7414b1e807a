/** What the JVM says of itself, every few seconds, as series named in the manner of Prometheus. */
package io.tachograph.core.sample;
