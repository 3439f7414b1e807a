/**
 * Tests of the built jar in separate JVMs, on each JDK, with a test server in this JVM. {@code mvn
 * verify} runs them.
 */
package io.tachograph.agent;
