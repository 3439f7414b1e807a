/**
 * Instrumentation: selects methods and inlines the advice. This code runs when a class is loaded, when the
 * rules change, and when the agent itself aggregates a method or switches it off. It does not run when a
 * method of the program is called.
 */
package io.tachograph.core.instrument;
