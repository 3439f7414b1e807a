/**
 * The probes for libraries: HTTP, JDBC, context across threads. Each is one class, listed in {@code
 * Probes}.
 */
package io.tachograph.probes;
