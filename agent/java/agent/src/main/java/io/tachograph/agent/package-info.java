/**
 * Loads the agent into a JVM: the entry points, and the class loader that isolates all classes of
 * the agent except those of this package and of the bootstrap.
 */
package io.tachograph.agent;
