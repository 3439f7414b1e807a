/**
 * What tests need: a server of the native protocol that keeps what it gets and can misbehave, and
 * the JDKs to test on. The decoder here is written from {@code docs/format/wire.md} and shares no
 * code with the agent's encoder.
 */
package io.tachograph.testing;
