/**
 * Which byte code is changed, and how: "here is a class that is being loaded, which of its methods
 * are watched, and what is put into them?" Runs when classes are loaded, never when they are
 * executed.
 */
package io.tachograph.core.instrument;
