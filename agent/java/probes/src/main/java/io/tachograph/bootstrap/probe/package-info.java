/**
 * Code that the advice of the library probes calls on the threads of the observed program. It maps
 * a request, a statement or a task to its operation and its parent. The bootstrap loader loads
 * these classes, so they use {@code java.base} only. The advice handles the types of the libraries
 * and passes strings, numbers and references of type {@code Object}.
 *
 * <p>Before: the advice classes in {@code io.tachograph.probes}. After: {@link
 * io.tachograph.bootstrap.Recorder}.
 */
package io.tachograph.bootstrap.probe;
