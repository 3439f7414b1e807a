/**
 * Records of the program's own: a type of record is one declaration, {@link
 * io.tachograph.api.Record}. What is generated from it writes into the agent's ring of the calling
 * thread where there is an agent, and does nothing where there is none. No dependencies.
 */
package io.tachograph.api;
