/**
 * Code that runs on the threads of the observed program.
 *
 * <p>The byte code that the agent inlines into methods of the program is called <i>advice</i>. The
 * bootstrap class loader loads these classes, so that advice in classes of other loaders can access
 * them. They depend on {@code java.base} only. In the steady state, recording a method call does
 * not allocate, lock, throw or do I/O.
 *
 * <p>The path of one call: {@link io.tachograph.bootstrap.Recorder} (static methods, called by
 * advice), {@link io.tachograph.bootstrap.ThreadBuffer} (a ring of {@code long}s per thread),
 * {@code io.tachograph.core.send.RingReader} (the sender thread cuts the events into segments),
 * {@code Outbox}, TCP. {@link io.tachograph.bootstrap.Word} defines the layout of a word.
 */
package io.tachograph.bootstrap;
