package io.tachograph.core.instrument;

/**
 * The instrumentation of a method. The constants are in the order of their numbers in PROBES
 * (wire.md).
 */
enum State {
    /** The method has its original byte code. */
    OFF("off"),
    /** Each call is recorded. */
    RECORD("on"),
    /** Each call is counted (number, sum, maximum, histogram) and not recorded. */
    AGGREGATE("aggregate");

    /** The word on the command line: {@code tacho probes on ...}. */
    final String word;

    State(String word) {
        this.word = word;
    }
}
