/**
 * Probes for SQL statements and the wait for a connection. Each probe class selects methods; its
 * advice classes contain the inlined code.
 */
package io.tachograph.probes.jdbc;
