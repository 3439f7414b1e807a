/**
 * Measures the cost of the agent's probes on this machine, multiplies it by the number of calls,
 * and compares the result with the limits in the settings. Also limits the number of recorded
 * traces.
 */
package io.tachograph.core.cost;
