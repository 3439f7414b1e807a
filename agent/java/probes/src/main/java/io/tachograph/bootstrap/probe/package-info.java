/**
 * What the advice of the library probes calls on the threads of the observed program: "here is a
 * request, a statement, a task; which operation is it, and what caused it?" Loaded by the bootstrap
 * loader, so {@code java.base} only; types of libraries are handled by the inlined advice itself
 * and come here as strings and numbers.
 *
 * <p>Before: the advice classes in {@code io.tachograph.probes}. After: {@link
 * io.tachograph.bootstrap.Recorder}.
 */
package io.tachograph.bootstrap.probe;
