/**
 * Called by the advice of the library probes on the threads of the observed program: maps a
 * request, a statement or a task to its operation and its parent. Loaded by the bootstrap loader,
 * so it uses {@code java.base} only; the inlined advice handles the types of libraries and passes
 * strings and numbers.
 *
 * <p>Before: the advice classes in {@code io.tachograph.probes}. After: {@link
 * io.tachograph.bootstrap.Recorder}.
 */
package io.tachograph.bootstrap.probe;
