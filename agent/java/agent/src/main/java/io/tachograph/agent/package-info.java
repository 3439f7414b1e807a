/**
 * How the agent gets into a JVM: the entry point and the class loader that hides everything else.
 */
package io.tachograph.agent;
