/**
 * The probes for libraries: HTTP, JDBC, and trace context across threads. {@code Probes} lists
 * them.
 */
package io.tachograph.probes;
