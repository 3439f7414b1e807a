/**
 * The probes for libraries: HTTP, JDBC, and trace context across threads. Each probe is one class
 * and one line in {@code Probes}.
 */
package io.tachograph.probes;
