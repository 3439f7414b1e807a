/**
 * Declared records: a program declares each record type with {@link io.tachograph.api.Record}. The
 * generated code writes into the agent's ring of the calling thread, and does nothing without an
 * agent. This module has no dependencies.
 */
package io.tachograph.api;
