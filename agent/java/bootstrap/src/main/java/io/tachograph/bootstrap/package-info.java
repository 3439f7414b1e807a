/**
 * What happens on the threads of the observed program, and nothing else.
 *
 * <p>These classes are loaded by the bootstrap class loader, so that byte code inlined into any
 * class can see them. They depend on {@code java.base} only, and in the steady state they do not
 * allocate, lock, throw or do I/O.
 *
 * <p>The path of one call: {@link io.tachograph.bootstrap.Recorder} (static, called by advice) ->
 * {@link io.tachograph.bootstrap.ThreadBuffer} (a ring of {@code long}s, one a thread) -> {@code
 * io.tachograph.core.send.RingReader} (the sender thread cuts the events into segments) -> {@code
 * Outbox} -> TCP. The layout of a word is in {@link io.tachograph.bootstrap.Word}.
 */
package io.tachograph.bootstrap;
