/** Loading the agent into a JVM: the entry point, and the class loader that isolates the rest. */
package io.tachograph.agent;
