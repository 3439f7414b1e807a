/**
 * Tests of the built jar in separate JVMs of JDK 17 and 25, with a test server in the JVM of the
 * tests. {@code mvn verify} runs them.
 */
package io.tachograph.agent;
