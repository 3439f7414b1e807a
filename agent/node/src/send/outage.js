// Does a person know that the server is away? Each outage is told, at most one a minute, and its end with what was lost. One that
// comes too soon after the last is told when the minute is over, if it is not by then. Before: `link.js`. After: `../log.js`.

const REPEAT_MS = 60_000;

export class Outage {
  /**
   * @param {string} server
   * @param {import('./totals.js').Totals} totals
   * @param {import('../log.js').Log} log
   */
  constructor(server, totals, log) {
    this.server = server;
    this.totals = totals;
    this.log = log;
    this.isOn = false;
    this.isTold = false;
    this.beganAt = 0;
    /** A connection was lost, in this outage or an earlier one. */
    this.wasConnected = false;
    this.toldAt = -Infinity;
    /** Calls, samples and entries: dropped when it began, and dropped in those whose end was not told. */
    this.before = [0, 0, 0];
    this.lost = [0, 0, 0];
  }

  /** What was dropped so far: calls, samples and entries. */
  dropped() {
    const { callsDropped, samplesDropped, entriesDropped } = this.totals;
    return [callsDropped, samplesDropped, entriesDropped];
  }

  /**
   * A connection, or a try to make one.
   * @param {number} now ms of any clock that never goes back
   * @param {boolean} wasOpen
   * @param {string} why
   * @param {number[]} before what was dropped before it failed
   */
  failed(now, wasOpen, why, before = this.dropped()) {
    if (!this.isOn) {
      this.isOn = true;
      this.isTold = false;
      this.beganAt = now;
      this.before = before;
    }
    this.wasConnected ||= wasOpen;
    if (this.isTold || now - this.toldAt < REPEAT_MS) {
      return;
    }
    this.isTold = true;
    this.toldAt = now;
    const what = this.wasConnected ? 'lost the server' : 'cannot reach the server';
    this.log.say(`${what} ${this.server}: ${why}; the program goes on, the agent keeps trying`);
  }

  /**
   * There is a connection.
   * @param {number} now as for `failed`
   */
  over(now) {
    if (!this.isOn) {
      this.log.say(`connected to ${this.server}`);
      return;
    }
    this.isOn = false;
    const dropped = this.dropped();
    const lost = this.lost.map((count, at) => count + dropped[at] - this.before[at]);
    if (!this.isTold) {
      this.lost = lost;
      return;
    }
    this.lost = [0, 0, 0];
    const [calls, samples, entries] = lost;
    const counts = `${calls} calls, ${samples} samples and ${entries} entries were dropped meanwhile`;
    const said = calls + samples + entries > 0 ? counts : 'nothing was dropped meanwhile';
    const what = this.wasConnected ? 'connected again to' : 'connected to';
    this.log.say(`${what} ${this.server} after ${Math.floor((now - this.beganAt) / 1_000)} s; ${said}`);
  }
}
