/**
 * The cost of the agent's probes: measured on this machine, multiplied by the number of calls, and
 * compared with the limits of the settings.
 */
package io.tachograph.core.cost;
