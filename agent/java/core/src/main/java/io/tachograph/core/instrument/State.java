package io.tachograph.core.instrument;

/** Instrumentation of a method. The order is that of the numbers in PROBES (wire.md). */
enum State {
    /** Original byte code. */
    OFF("off"),
    /** Each call is a record. */
    RECORD("on"),
    /** Each call is counted: number, sum, maximum, histogram; no records. */
    AGGREGATE("aggregate");

    /** The word of the command line: {@code tacho probes on ...}. */
    final String word;

    State(String word) {
        this.word = word;
    }
}
