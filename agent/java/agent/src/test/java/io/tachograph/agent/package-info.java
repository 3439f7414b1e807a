/**
 * Tests of the built jar in separate JVMs of JDK 17 and 25, with a test server in this JVM. {@code
 * mvn verify} runs them.
 */
package io.tachograph.agent;
