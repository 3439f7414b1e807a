/**
 * The client side of the native protocol of {@code docs/format/wire.md}: frames of the agent are
 * encoded, frames of the server are decoded. No I/O and no clock.
 *
 * <p>Before: {@code io.tachograph.core.send.RingReader}. After: {@code
 * io.tachograph.core.send.Link}.
 */
package io.tachograph.core.wire;
