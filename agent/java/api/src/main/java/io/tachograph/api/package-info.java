/**
 * Declared records: a program declares each record type with {@link io.tachograph.api.Record}. The
 * generated code writes the records into the agent's ring of the calling thread. Without an agent
 * it does nothing. This module has no dependencies.
 */
package io.tachograph.api;
