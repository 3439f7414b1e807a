/**
 * Test support: a server of the native protocol that stores received data and can misbehave, and
 * the JDKs to test on. The decoder is written from {@code docs/format/wire.md} and shares no code
 * with the agent's encoder.
 */
package io.tachograph.testing;
