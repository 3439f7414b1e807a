package io.tachograph.core.instrument;

/** What happens in a method. The order is that of the numbers in PROBES (wire.md). */
enum State {
    /** Its byte code is that of the program. */
    OFF("off"),
    /** Each call is a record. */
    RECORD("on"),
    /** Each call is counted: number, sum, maximum, histogram; no records. */
    AGGREGATE("aggregate");

    /** As a person says it: {@code tacho probes on ...}. */
    final String word;

    State(String word) {
        this.word = word;
    }
}
