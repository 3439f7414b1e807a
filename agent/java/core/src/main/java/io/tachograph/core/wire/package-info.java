/**
 * Encoding of records: the native protocol of {@code docs/format/wire.md}, client side. No I/O, no
 * clock. Before: {@code io.tachograph.core.send.RingReader}; after: {@code
 * io.tachograph.core.send.Link}.
 */
package io.tachograph.core.wire;
