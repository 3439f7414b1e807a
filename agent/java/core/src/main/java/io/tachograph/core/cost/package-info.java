/**
 * The cost of the agent's probes. It is measured on this machine, multiplied by the number of
 * calls, and compared with the limits in the settings.
 */
package io.tachograph.core.cost;
