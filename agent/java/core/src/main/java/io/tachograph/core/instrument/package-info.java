/**
 * Instrumentation: selects methods and inlines the advice. This code runs when a class is loaded
 * or the rules change, never when a method of the program is called.
 */
package io.tachograph.core.instrument;
