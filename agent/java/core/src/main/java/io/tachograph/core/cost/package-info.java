/**
 * The cost of the agent's probes. It is measured on this machine, multiplied by the number of
 * calls, and compared with the limits in the settings. A limit on the number of recorded traces is
 * enforced here too.
 */
package io.tachograph.core.cost;
