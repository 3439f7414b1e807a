/**
 * The sender: one daemon thread that empties the rings, cuts events into segments, keeps frames
 * until they are acknowledged, and communicates with the server. It makes no blocking system call
 * except to read the files of TLS and of the token and to write the log, so a slow or unreachable
 * server does not delay the reading of the rings.
 *
 * <p>The path: {@link io.tachograph.core.send.Sender} (the loop), {@link
 * io.tachograph.core.send.RingReader} (words to segments), {@link io.tachograph.core.send.Outbox}
 * (records to frames, bounded), {@link io.tachograph.core.send.Link} (TCP), {@link
 * io.tachograph.core.send.TlsChannel} (if the connection is encrypted).
 */
package io.tachograph.core.send;
