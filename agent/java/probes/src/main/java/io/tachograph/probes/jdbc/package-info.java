/**
 * The probes for SQL statements and the wait for a connection. Each probe says where, each advice
 * what.
 */
package io.tachograph.probes.jdbc;
