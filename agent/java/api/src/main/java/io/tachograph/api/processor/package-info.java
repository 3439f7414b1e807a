/** At compile time: from {@link io.tachograph.api.Record} to straight-line code. */
package io.tachograph.api.processor;
