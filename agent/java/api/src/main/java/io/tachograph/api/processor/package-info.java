/**
 * The annotation processor. It generates straight-line code from {@link io.tachograph.api.Record}.
 */
package io.tachograph.api.processor;
