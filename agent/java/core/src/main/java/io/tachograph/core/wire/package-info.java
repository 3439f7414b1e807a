/**
 * Encoding of records for the native protocol of {@code docs/format/wire.md}, client side. It has
 * no I/O and no clock.
 *
 * <p>Before: {@code io.tachograph.core.send.RingReader}. After: {@code
 * io.tachograph.core.send.Link}.
 */
package io.tachograph.core.wire;
