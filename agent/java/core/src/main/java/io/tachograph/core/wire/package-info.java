/**
 * Encodes the agent's frames and decodes the server's frames of the native protocol ({@code
 * docs/format/wire.md}). No I/O and no clock.
 *
 * <p>Before: {@code io.tachograph.core.send.RingReader}. After: {@code
 * io.tachograph.core.send.Link}.
 */
package io.tachograph.core.wire;
