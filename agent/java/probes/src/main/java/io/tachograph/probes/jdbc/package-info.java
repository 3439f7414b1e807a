/**
 * Probes for SQL statements and the wait for a connection. Each probe selects methods; its advice
 * has the code.
 */
package io.tachograph.probes.jdbc;
