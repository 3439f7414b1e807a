/**
 * Test support: a server of the native protocol that stores received data and can behave wrongly, a
 * certificate authority, and the JDKs on which to test. The decoder shares no code with the agent's
 * encoder, except {@code Session}, which computes ids.
 */
package io.tachograph.testing;
