/**
 * The probes for what follows a trace from one thread to another. Each probe says where, each
 * advice what.
 */
package io.tachograph.probes.context;
