/**
 * Declared records: a program declares each record type with {@link io.tachograph.api.Record}. The
 * generated code writes the records into the agent's ring of the calling thread; without an agent,
 * the code does nothing. At run time, this module uses only classes of the JDK and of the agent.
 */
package io.tachograph.api;
