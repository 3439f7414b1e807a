// What did the agent do, and what was left out, since the process began? Counted everywhere, read by `../sample/agent.js` and
// PING.

export class Totals {
  constructor() {
    /** Calls whose exit was put into a frame. */
    this.callsSent = 0;
    /** Calls that found no room, in a strand or in the queue. */
    this.callsDropped = 0;
    this.samplesSent = 0;
    this.samplesDropped = 0;
    this.entriesSent = 0;
    this.entriesDropped = 0;
    this.attributesDropped = 0;
    /** Records that the server refused. */
    this.rejected = 0;
    /** Connections that were made. */
    this.connects = 0;
    /** Bytes written to the connection, repetitions included. */
    this.bytesSent = 0;
  }
}
