/**
 * Starts the agent inside its own class loader: installs the bootstrap classes, then starts the
 * core with all probes.
 */
package io.tachograph.agent.inside;
