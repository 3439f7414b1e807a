/** The first class inside the agent's own class loader: names the probes and starts the core. */
package io.tachograph.agent.inside;
