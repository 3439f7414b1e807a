/**
 * The annotation processor, which generates the writers of the types that {@link
 * io.tachograph.api.Record} declares.
 */
package io.tachograph.api.processor;
