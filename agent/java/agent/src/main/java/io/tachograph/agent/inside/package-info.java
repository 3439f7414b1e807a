/**
 * The classes with which the agent starts inside its own class loader. {@code Startup} installs the
 * bootstrap classes, and starts the core with all probes.
 */
package io.tachograph.agent.inside;
