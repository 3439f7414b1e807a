/**
 * The probes for libraries: HTTP, JDBC, context across threads. Each is one class and one line in
 * {@code Probes}.
 */
package io.tachograph.probes;
