// Counts of this thread's agent since it started: sent, dropped, refused. Many files update them. Only the main thread sends its
// counts as samples (`../sample/sampler.js`). Each thread reports dropped records in PING and in the log (`outage.js`,
// `drops.js`).

export class Totals {
  constructor() {
    /** Calls with an exit that was added to a frame. */
    this.callsSent = 0;
    /** Dropped calls: too many open calls, a full queue, an internal error, or a frame that the server refuses permanently. */
    this.callsDropped = 0;
    this.samplesSent = 0;
    this.samplesDropped = 0;
    this.entriesSent = 0;
    this.entriesDropped = 0;
    this.attributesDropped = 0;
    /** REJECT frames of the server: at most 16 for each DATA frame, even if more records were refused. */
    this.rejected = 0;
    /** Connections established. */
    this.connects = 0;
    /** Bytes written to the connection, including repeated frames. */
    this.bytesSent = 0;
  }
}
