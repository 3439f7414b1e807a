/**
 * Loads the agent into a JVM: the entry point, and the class loader that isolates all other
 * classes.
 */
package io.tachograph.agent;
