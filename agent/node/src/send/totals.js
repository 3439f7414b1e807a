// Counts of the agent since the process began: sent, dropped, refused. Updated everywhere, read by `../sample/sampler.js` and
// PING.

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
    /** Records that the server refused. */
    this.rejected = 0;
    /** Connections established. */
    this.connects = 0;
    /** Bytes written to the connection, including repeated frames. */
    this.bytesSent = 0;
  }
}
