/**
 * Real JVMs with the real jar, against a server in this JVM, on each JDK. Run by {@code mvn
 * verify}.
 */
package io.tachograph.agent;
