/**
 * Records of the program: a record type is one declaration, {@link io.tachograph.api.Record}. The
 * generated code writes into the agent's ring of the calling thread, and does nothing without an
 * agent. No dependencies.
 */
package io.tachograph.api;
