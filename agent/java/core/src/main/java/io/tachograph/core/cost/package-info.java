/**
 * What the agent's own probes cost: measured once on this machine, multiplied by the calls there
 * are, and held against the limits that a person sets.
 */
package io.tachograph.core.cost;
