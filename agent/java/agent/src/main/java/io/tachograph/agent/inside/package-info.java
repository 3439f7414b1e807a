/** The first class in the agent's own class loader. It lists the probes and starts the core. */
package io.tachograph.agent.inside;
