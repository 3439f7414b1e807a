/**
 * The annotation processor. It generates the code that writes the records of the types that {@link
 * io.tachograph.api.Record} declares.
 */
package io.tachograph.api.processor;
