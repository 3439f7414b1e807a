// Logs the number of dropped calls: at most once per minute, and at the end of the program. Calls dropped during an outage cause
// no such line, because the line about the end of the outage has their number. If the program ends during the outage, they are in
// the line at the end of the program. Before: `outage.js`. After: `../log.js`.

import * as messages from '../messages.js';

const REPEAT_MS = 60_000;
const REMEDY = 'wrap fewer functions, or raise pending or queue';

export class Drops {
  /**
   * @param {import('./totals.js').Totals} totals
   * @param {import('../log.js').Log} log
   */
  constructor(totals, log) {
    this.totals = totals;
    this.log = log;
    /** Dropped calls that a line has reported. */
    this.told = 0;
    this.toldAt = -Infinity;
  }

  /**
   * Called periodically except during an outage, and at the end.
   * @param {number} now ms of any monotonic clock
   * @param {boolean} [isLast] the program ends
   */
  look(now, isLast = false) {
    const calls = this.totals.callsDropped;
    if (calls === this.told || (!isLast && now - this.toldAt < REPEAT_MS)) {
      return;
    }
    this.told = calls;
    this.toldAt = now;
    this.log.say(messages.callsDropped(calls, REMEDY));
  }
}
