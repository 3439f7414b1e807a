/**
 * Instrumentation: selects the methods of a class that is being loaded, and inlines the advice.
 * This code runs when classes are loaded, never when they are executed.
 */
package io.tachograph.core.instrument;
