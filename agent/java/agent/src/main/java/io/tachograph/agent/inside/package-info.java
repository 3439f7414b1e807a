/**
 * The first classes in the agent's own class loader. {@code Startup} lists the probes and starts
 * the core.
 */
package io.tachograph.agent.inside;
